"""Negatives drawn by chance.

b: queries   n: keys scored   k: keys drawn
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from vantage import draws
from vantage.errors import UserError
from vantage.records import Keys, Scores

__all__ = ["Sample"]


@dataclass(frozen=True)
class Sample:
    """Draw negatives uniformly from those that are left.

    Banks draw with replacement and do not exclude the own row (Wu et al., arXiv 1805.01978: an alias table over equal
    weights); `(OtherImages(), Sample(k))` excludes it. The draws are a function of the query's seed (`vantage.draws`).
    """

    count: int
    """Negatives for each query."""

    replacement: bool = True
    """Whether a key may be drawn twice; without, a query with fewer than `count` keys keeps them all."""

    salt: int = 0
    """Another number draws others for the same image and step."""

    share: float = 0.1
    """Share of the images that `count` may be, once fitted to a data set: 4,096 of 50,000 is about a tenth."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UserError(f"Sample(count={self.count}) draws nothing: give a count of at least 1")
        if not 0 < self.share <= 1:
            raise UserError(f"Sample(share={self.share}) is no share of the images: give one above 0, at most 1")

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The drawn pairs, as columns of their own."""
        if not self.replacement:
            return scores.narrow(self._distinct(scores.keep, query))
        if scores.all_kept:
            return scores.narrow(self.columns(query, scores.keep.shape[1]))
        return scores.narrow(self._kept_columns(scores.keep, query))

    def columns(self, query: Keys, keys: int) -> Int[Tensor, "b k"]:
        """Draws with replacement from `keys` columns of which none is dropped; needs no cosines."""
        return draws.integers(query.seeds, self.count, keys, self.salt)

    def fit(self, images: int, batch: int) -> "Sample":
        """At most `share` of the images, but no fewer than 256 unless there are fewer images."""
        return replace(self, count=min(self.count, max(int(self.share * images), min(images, 256))))

    def _kept_columns(self, keep: Bool[Tensor, "b n"], query: Keys) -> Int[Tensor, "b k"]:
        upto = keep.cumsum(1)
        # The r-th kept column is the first whose running count reaches r; a row with none gives dropped columns.
        nth = draws.integers(query.seeds, self.count, upto[:, -1:].clamp(min=1), self.salt) + 1
        return torch.searchsorted(upto, nth).clamp_(max=keep.shape[1] - 1)

    def _distinct(self, keep: Bool[Tensor, "b n"], query: Keys) -> Int[Tensor, "b k"]:
        order = draws.uniforms(query.seeds, keep.shape[1], self.salt).masked_fill_(~keep, -1.0)
        return order.topk(min(self.count, keep.shape[1]), dim=1, sorted=False).indices
