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

    Before a band of the most similar keys, it makes InterCLR's semi-hard sampling ten times cheaper (arXiv 2008.11702,
    §3.2: a draw from the most similar tenth). Take a simple random subset of s of n keys. Its k most similar keys are a
    uniform k-subset of the R − 1 most similar of all n keys, where R, the rank of the next key of the subset, is
    negative-hypergeometric with mean (k + 1)(n + 1)/(s + 1). So `(Subset(163_840), OtherClusters(), Hardest())` draws
    about 16,384 rows for each query, from a pool that is very nearly a tenth of the other clusters' 1.28 million rows
    (standard deviation .7 %). Queries of one step share the subset, so their draws are not independent. For a pool of
    exactly a tenth with independent draws, use `(OtherClusters(), Hardest(), Distinct(16_384))`.

    If it is the first rule, it narrows the pool before anything is scored.
    """

    count: int
    """Number of keys in the subset, or all keys if there are fewer."""

    salt: int = 0
    """A different number gives a different subset for the same step."""

    share: float = 1.0
    """Largest share of the images that `count` may be after `fit`. With 1, a data set smaller than the count is used
    whole, so that a band of a tenth is exactly a tenth; .128, as in 163,840 of 1.28 million, is faster."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UserError(f"Subset(count={self.count}) keeps nothing: give a count of at least 1")
        if not 0 < self.share <= 1:
            raise UserError(f"Subset(share={self.share}) is not a share of the images: give one above 0, at most 1")

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs with the keys of the subset, in columns that are the same for every query."""
        column = self.subset_of(query, scores.cosine.shape[1])
        key = scores.key[0][column].expand(len(scores.key), -1) if scores.key.stride(0) == 0 else scores.key[:, column]
        cosine = scores.cosine[:, column]
        return Scores.whole(cosine, key) if scores.keeps_all else Scores(cosine, key, scores.keep[:, column])

    def subset_of(self, query: Keys, keys: int) -> Int[Tensor, "s"]:
        """The chosen columns out of `keys`, in order; a function of the step's seed alone.

        Each column gets a random number, different from all others of the same seed, and the smallest are chosen.
        """
        device = query.vector.device
        if self.count >= keys:
            return torch.arange(keys, device=device)
        if query.step_seed is None:
            raise UserError("these queries have no seed in common: set Keys.step_seed (Learner does)")
        seed = torch.full((1,), draws.mix(query.step_seed, self.salt), device=device)
        number = draws.bits(seed, keys)[0]
        if device.type != "cpu":
            return number.topk(self.count, largest=False, sorted=False).indices.sort().values
        last = int(np.partition(number.numpy(), self.count - 1)[self.count - 1])  # torch is five times slower
        return (number <= last).nonzero()[:, 0]

    def fit_to(self, images: int, batch_size: int) -> "Subset":
        """At most `share` of the images, but at least 2,560 unless there are fewer images."""
        return replace(self, count=min(self.count, max(int(self.share * images), min(images, 2_560))))
