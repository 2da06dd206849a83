"""Pure functions of features, scores and labels."""

from vantage.measures.accuracy import Accuracy, accuracy
from vantage.measures.average_precision import average_precision

__all__ = ["Accuracy", "accuracy", "average_precision"]
