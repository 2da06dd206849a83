"""Cosines with rows that other processes hold: the queries are sent to the rows.

b: queries here   p: rows for each query
"""

from dataclasses import replace

from jaxtyping import Float, Int
from torch import Tensor

from vantage import processes
from vantage.cosines.columns import column_cosines
from vantage.records import Keys, Shard, rows_here

__all__ = ["cosines_of_rows", "gather_queries"]


def gather_queries(query: Keys) -> Keys:
    """The queries of all processes, in rank order; the gradient flows back to each process."""
    cluster = None if query.cluster is None else processes.gather(query.cluster)
    seed = None if query.seed is None else processes.gather(query.seed)
    vector, image = processes.gather(query.vector), processes.gather(query.image)
    return replace(query, vector=vector, image=image, cluster=cluster, seed=seed)


def cosines_of_rows(query: Keys, pool: Shard, row: Int[Tensor, "b p"]) -> Float[Tensor, "b p"]:
    """Each query's cosines with its own rows, whichever process holds them. Every process must pass equally many."""
    if row.shape[1] == 0:
        return query.vector[:, :0]
    local, mine = rows_here(processes.gather(row), pool.first, len(pool.local))
    cosine = column_cosines(gather_queries(query).vector, pool.local.vector, local)
    return processes.own_total(cosine.masked_fill(~mine, 0.0))
