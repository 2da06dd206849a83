"""The nearest rows of a pool.

b: queries   m: keys in the pool   k: rows for each query
"""

import torch
from jaxtyping import Int
from torch import Tensor

from vantage.partition import BUDGET
from vantage.records import Keys

__all__ = ["nearest_rows"]


@torch.no_grad()
def nearest_rows(query: Keys, pool: Keys, count: int) -> Int[Tensor, "b k"]:
    """The `count` rows most similar to each query, or all there are, from the nearest on.

    In tiles of queries, so that a bank of any size costs a bounded table.
    """
    tile = max(1, BUDGET // (2 * pool.vector.element_size() * len(pool)))
    count, keys = min(count, len(pool)), pool.vector.T
    return torch.cat([(part @ keys).topk(count, dim=1).indices for part in query.vector.split(tile)])
