"""Cosines of queries with chosen keys, and the precision in which all similarities are computed."""

from vantage.cosines.columns import column_cosines, sum_of_columns
from vantage.cosines.precision import BUDGET, full, in_full
from vantage.cosines.shards import cosines_of_rows, gather_queries

__all__ = ["BUDGET", "column_cosines", "cosines_of_rows", "full", "gather_queries", "in_full", "sum_of_columns"]
