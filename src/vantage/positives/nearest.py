"""The nearest rows of a pool.

b: queries   m: keys in the pool   k: rows for each query
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from vantage import processes
from vantage.cosines import BUDGET, gather_queries
from vantage.records import Keys, Pool, Shard

__all__ = ["nearest_rows"]


@torch.no_grad()
def nearest_rows(query: Keys, pool: Pool, count: int) -> Int[Tensor, "b k"]:
    """The `count` rows most similar to each query, or all if there are fewer, nearest first.

    Computed in tiles of queries, so that memory stays bounded for a bank of any size. If the rows are sharded, every
    process contributes the nearest of its own rows, and the nearest of these are returned.
    """
    count = min(count, len(pool))
    if not isinstance(pool, Shard):
        return _nearest(query.vector, pool.vector, count).indices
    most = min(count, -(-len(pool) // processes.count()))  # from one process; the same number on each
    close, row = _nearest(gather_queries(query).vector, pool.local.vector, min(most, len(pool.local)))
    close = pad(close, (0, most - close.shape[1]), value=-torch.inf)
    row = pad(row + pool.first, (0, most - row.shape[1]))
    close, row = (processes.gather(part[None]).transpose(0, 1).flatten(1) for part in (close, row))
    return processes.own_rows(row).gather(1, processes.own_rows(close).topk(count, dim=1).indices)


def _nearest(query: Float[Tensor, "b d"], keys: Float[Tensor, "m d"], count: int) -> "Nearest":
    tile = max(1, BUDGET // (2 * keys.element_size() * len(keys)))
    parts = [(part @ keys.T).topk(count, dim=1) for part in query.split(tile)]
    return Nearest(*(torch.cat(each) for each in zip(*parts, strict=True)))


class Nearest(NamedTuple):
    """The keys nearest to each query."""

    values: Float[Tensor, "b k"]
    """Their cosines with the query."""

    indices: Int[Tensor, "b k"]
    """Their rows."""
