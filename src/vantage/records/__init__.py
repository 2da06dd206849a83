"""What parts hand to each other: keys, scores, and the index of rows by cluster."""

from vantage.records.keys import Keys, Scores, score
from vantage.records.members import Members

__all__ = ["Keys", "Members", "Scores", "score"]
