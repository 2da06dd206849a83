"""How good a frozen encoder is: nearest neighbours and linear classifiers, by protocols that carry name and version."""

from vantage.evaluate.accuracy import Accuracy, accuracy
from vantage.evaluate.evaluation import Result, evaluate, split
from vantage.evaluate.heads import Heads
from vantage.evaluate.knn import KNN, NearestNeighbour
from vantage.evaluate.labelled import held_out
from vantage.evaluate.linear import LinearCMC, LinearMoCo, LinearPyContrast
from vantage.evaluate.linear_depths import LinearMulti, LinearRing
from vantage.evaluate.logistic import LinearCached, Logistic, fit_logistic
from vantage.evaluate.outcome import EvaluationProtocol, Outcome

PROTOCOLS = (
    KNN,
    NearestNeighbour,
    LinearMoCo,
    LinearPyContrast,
    LinearCMC,
    LinearRing,
    LinearMulti,
    LinearCached,
)
"""Every protocol that `vantage evaluate` and `vantage compare` know."""

__all__ = [
    "PROTOCOLS",
    "KNN",
    "Accuracy",
    "EvaluationProtocol",
    "Heads",
    "LinearCMC",
    "LinearCached",
    "LinearMoCo",
    "LinearMulti",
    "LinearPyContrast",
    "LinearRing",
    "Logistic",
    "NearestNeighbour",
    "Outcome",
    "Result",
    "accuracy",
    "evaluate",
    "fit_logistic",
    "held_out",
    "split",
]
