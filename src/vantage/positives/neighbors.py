"""Positives from other images: the keys nearest to the query, whatever their clusters.

b: queries   p: positives of each query
"""

from dataclasses import dataclass

import torch

from vantage.negatives import AbsoluteRing, Ring
from vantage.positives.nearest import nearest_rows
from vantage.positives.positives import Positives, of_rows
from vantage.positives.views import Remembered
from vantage.records import Keys, Pool, Scores

__all__ = ["Neighbors"]


@dataclass(frozen=True)
class Neighbors:
    """The query's own positive, then the keys that a ring drops as too similar: `neighbor_views` of Ring's release
    (arXiv 2010.02037), which is not in its paper.

    If the branch's rules contain the same ring, no key is both positive and negative. `SoftNeighbors` and
    `MeanNeighbors` join the positives in the release's two ways; the release's flag can select only the first. As in
    the release, the query's own row of a bank is ranked like any other, so in a trained bank it is both the own
    positive and the nearest neighbor.
    """

    own: Positives = Remembered()
    """Chooses the query's own positive, which comes first."""

    ring: Ring | AbsoluteRing = Ring()
    """The ring whose inner cut, out of all keys in the memory, becomes the other positives."""

    def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Pool, step: int) -> Scores:
        """Raises the `UserError`s of `own` and of the ring."""
        first = self.own(query, keys, pool, step)
        inner, _ = self.ring.ranks(torch.tensor([len(pool)]), step)
        row = nearest_rows(query, pool, int(inner))
        near = of_rows(query, pool, row, torch.ones_like(row, dtype=torch.bool))
        pairs = ((first.cosine, near.cosine), (first.key, near.key), (first.keep, near.keep))
        cosine, key, keep = (torch.cat(pair, dim=1) for pair in pairs)
        return Scores(cosine, key, keep)
