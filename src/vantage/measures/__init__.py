"""Pure functions of features, scores and labels."""

from vantage.measures.accuracy import Accuracy, accuracy, best_classes
from vantage.measures.average_precision import average_precision
from vantage.measures.neighbors import nearest, vote
from vantage.measures.sphere import alignment, deviation, effective_rank, pair_potential, uniformity

__all__ = [
    "Accuracy",
    "accuracy",
    "alignment",
    "average_precision",
    "best_classes",
    "deviation",
    "effective_rank",
    "nearest",
    "pair_potential",
    "uniformity",
    "vote",
]
