"""Sets larger than one disk: many tar files in webdataset's layout, indexed once and read in place."""

from vantage.data.sources.shards.braces import expand_braces
from vantage.data.sources.shards.shards import Shards

__all__ = ["Shards", "expand_braces"]
