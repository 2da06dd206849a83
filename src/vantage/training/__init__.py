"""A training run: its settings, the loop, its checkpoints, and what it reports while it trains."""

from vantage.composition.public import make_public
from vantage.training.loop import TrainingOutcome as TrainingOutcome
from vantage.training.loop import resume as resume
from vantage.training.loop import train as train
from vantage.training.optimizers import LARS as LARS
from vantage.training.optimizers import SGD as SGD
from vantage.training.optimizers import AdamW as AdamW
from vantage.training.optimizers import BiasAndNorm as BiasAndNorm
from vantage.training.optimizers import Exclusion as Exclusion
from vantage.training.optimizers import Named as Named
from vantage.training.optimizers import NoParameters as NoParameters
from vantage.training.optimizers import Optimizer as Optimizer
from vantage.training.run import Data as Data
from vantage.training.run import Hardware as Hardware
from vantage.training.run import Monitoring as Monitoring
from vantage.training.run import Run as Run

__all__ = make_public(globals())  # pyright: ignore
