"""Numbers that follow the step, and learning rates that follow the epochs.

A `Schedule` maps the step (optimizer steps taken so far, from 0) to a number: a weight, a temperature, a percentile. A
`LearningRate` maps a step to the learning rate; it also takes the length of an epoch and of the run, so that one recipe
fits a data set of any size. Both are frozen values without state: resuming at step s needs only s. Only `Adaptive`
schedules depend on how training went; their state is saved with that of the run.
"""

from vantage.composition.public import make_public
from vantage.schedules.adaptive import Adaptive as Adaptive
from vantage.schedules.adaptive import AdaptiveState as AdaptiveState
from vantage.schedules.adaptive import FollowsAccuracy as FollowsAccuracy
from vantage.schedules.adaptive import FollowsLoss as FollowsLoss
from vantage.schedules.epochs import BetweenEpochs as BetweenEpochs
from vantage.schedules.epochs import ByEpoch as ByEpoch
from vantage.schedules.epochs import RampByEpoch as RampByEpoch
from vantage.schedules.numbers import Constant as Constant
from vantage.schedules.numbers import Cosine as Cosine
from vantage.schedules.numbers import Exponential as Exponential
from vantage.schedules.numbers import Linear as Linear
from vantage.schedules.numbers import Schedule as Schedule
from vantage.schedules.numbers import Steps as Steps
from vantage.schedules.rates import CosineByEpoch as CosineByEpoch
from vantage.schedules.rates import CosineByStep as CosineByStep
from vantage.schedules.rates import LearningRate as LearningRate
from vantage.schedules.rates import StepDecay as StepDecay

__all__ = make_public(globals())  # pyright: ignore
