"""Numbers that follow the step, and learning rates that follow the epochs.

A `Schedule` maps the step (optimizer steps taken so far, from 0) to a number: a weight, a temperature, a percentile. A
`LearningRate` maps a step to the learning rate; it also takes the length of an epoch and of the run, so that one recipe
fits a data set of any size. Both are frozen values without state: resuming at step s needs only s. Only `Adaptive` ones
depend on how training went; their state is saved with the run's.
"""

from vantage.schedules.adaptive import Adapted, Adaptive, FollowsAccuracy, FollowsLoss
from vantage.schedules.epochs import BetweenEpochs, ByEpoch
from vantage.schedules.numbers import Constant, Cosine, Exponential, Linear, Schedule, Steps
from vantage.schedules.rates import CosineByEpoch, CosineByStep, LearningRate, StepDecay

__all__ = [
    "Adapted",
    "Adaptive",
    "BetweenEpochs",
    "ByEpoch",
    "Constant",
    "Cosine",
    "CosineByEpoch",
    "CosineByStep",
    "Exponential",
    "FollowsAccuracy",
    "FollowsLoss",
    "Linear",
    "LearningRate",
    "Schedule",
    "StepDecay",
    "Steps",
]
