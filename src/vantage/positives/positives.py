"""The contract of every kind of positives.

b: queries   p: positives of each query   d: width
"""

from typing import ClassVar, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vantage.cosines import cosines_of_rows
from vantage.records import Keys, Pool, Scores, Shard

__all__ = ["AlwaysFinds", "Positives", "of_rows", "pair_scores"]


@runtime_checkable
class Positives(Protocol):
    """Chooses positives: from the keys of this step (one record for each view in `Branch.keys`, aligned with the
    queries) or from the pool."""

    def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Pool, step: int) -> Scores:
        """Cosines of each query with its positives; `step` counts from 0, for settings that depend on it."""
        ...


@runtime_checkable
class AlwaysFinds(Protocol):
    """Positives that declare that every query has one, so that those of accumulated parts need not be counted first."""

    always_finds: ClassVar[Literal[True]]


def pair_scores(
    query: Keys, vector: Float[Tensor, "b p d"], key: Int[Tensor, "b p"], keep: Bool[Tensor, "b p"] | None = None
) -> Scores:
    """Scores of each query with its own vectors; if `keep` is omitted, all of them count."""
    # The query is on the left: as a column on the right it takes twice as long, and the gradient four times.
    cosine = torch.bmm(query.vector.unsqueeze(1), vector.mT).squeeze(1)
    return Scores.whole(cosine, key) if keep is None else Scores(cosine, key, keep)


def of_rows(query: Keys, pool: Pool, row: Int[Tensor, "b p"], keep: Bool[Tensor, "b p"] | None = None) -> Scores:
    """Scores of each query with its own rows of the pool; if `keep` is omitted, all of them count."""
    if not isinstance(pool, Shard):
        return pair_scores(query, pool.vector[row], row, keep)
    cosine = cosines_of_rows(query, pool, row)
    return Scores.whole(cosine, row) if keep is None else Scores(cosine, row, keep)
