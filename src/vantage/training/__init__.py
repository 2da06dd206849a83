"""A training run: its settings, the loop, its checkpoints, and what it reports while it trains."""

from vantage.training.loop import TrainingOutcome, resume, train
from vantage.training.optimizers import LARS, SGD, AdamW, BiasAndNorm, Exclusion, Named, NoParameters, Optimizer
from vantage.training.run import Data, Hardware, Monitoring, Run

__all__ = [
    "LARS",
    "SGD",
    "AdamW",
    "BiasAndNorm",
    "Data",
    "Exclusion",
    "Hardware",
    "Monitoring",
    "Named",
    "NoParameters",
    "Optimizer",
    "Run",
    "TrainingOutcome",
    "resume",
    "train",
]
