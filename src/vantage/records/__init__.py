"""What parts pass to each other: keys, scores, negatives, and the index of rows by cluster."""

from vantage.records.keys import Keys, Scores, demand, score
from vantage.records.members import Members
from vantage.records.negatives import Negatives
from vantage.records.shard import Pool, Shard, rows_here

__all__ = ["Keys", "Members", "Negatives", "Pool", "Scores", "Shard", "demand", "rows_here", "score"]
