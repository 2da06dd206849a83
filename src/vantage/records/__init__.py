"""What parts pass to each other: keys, scores, negatives, and the index of rows by cluster."""

from vantage.records.keys import Keys, Scores, demand, score
from vantage.records.members import Members
from vantage.records.negatives import Negatives

__all__ = ["Keys", "Members", "Negatives", "Scores", "demand", "score"]
