"""A random subset of the pool, the same for all queries of a step.

b: queries   n: keys scored   s: keys of the subset
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from vantage import draws
from vantage.errors import UserError
from vantage.negatives.rule import PoolRule
from vantage.records import Keys, Scores

__all__ = ["Subset"]


@dataclass(frozen=True)
class Subset(PoolRule):
    """A simple random subset of the keys, drawn without replacement, the same for all queries of a step.

    Before a band of the most similar keys it is InterCLR's semi-hard sampling at a tenth of the cost (arXiv 2008.11702,
    §3.2: a draw from the tenth most similar): the k most similar of a simple random subset of s of n keys are a uniform
    k-subset of the R − 1 most similar of all, where R, the rank of the subset's next, is negative-hypergeometric with
    mean (k + 1)(n + 1)/(s + 1). So `(Subset(163_840), OtherClusters(), Hardest())` draws about 16,384 rows from a pool
    of nearly exactly a tenth of the other clusters' 1.28 million (standard deviation .7 %), for every query by itself;
    queries of one step share the subset, so that their draws depend on each other. The pool of exactly a tenth, with
    independent draws: `(OtherClusters(), Hardest(), Distinct(16_384))`.

    As the first rule it narrows the pool before anything is scored.
    """

    count: int
    """Keys of the subset; all where there are fewer."""

    salt: int = 0
    """Another number draws another subset for the same step."""

    share: float = 1.0
    """Share of the images that `count` may be, once fitted to a data set. At 1 a set smaller than the count is taken
    whole, so that a pool of a tenth is exactly that; .128, as 163,840 of 1.28 million, is faster."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UserError(f"Subset(count={self.count}) keeps nothing: give a count of at least 1")
        if not 0 < self.share <= 1:
            raise UserError(f"Subset(share={self.share}) is no share of the images: give one above 0, at most 1")

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """Those columns of the table, for every query the same."""
        column = self.subset_of(query, scores.cosine.shape[1])
        key = scores.key[0][column].expand(len(scores.key), -1) if scores.key.stride(0) == 0 else scores.key[:, column]
        cosine = scores.cosine[:, column]
        return Scores.whole(cosine, key) if scores.keeps_all else Scores(cosine, key, scores.keep[:, column])

    def subset_of(self, query: Keys, keys: int) -> Int[Tensor, "s"]:
        """Numbers of the chosen among `keys` columns, in order; a function of the step's seed alone.

        Each column gets a random number, no two of one seed the same, and the smallest stay.
        """
        device = query.vector.device
        if self.count >= keys:
            return torch.arange(keys, device=device)
        seed = torch.full((1,), draws.mix(query.common_seed, self.salt), device=device)
        number = draws.bits(seed, keys)[0]
        if device.type != "cpu":
            return number.topk(self.count, largest=False, sorted=False).indices.sort().values
        last = int(np.partition(number.numpy(), self.count - 1)[self.count - 1])  # torch selects five times as slowly
        return (number <= last).nonzero()[:, 0]

    def fit_to(self, images: int, batch_size: int) -> "Subset":
        """At most `share` of the images, but no fewer than 2,560 unless there are fewer images."""
        return replace(self, count=min(self.count, max(int(self.share * images), min(images, 2_560))))
