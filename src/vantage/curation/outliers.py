"""Images that are far from all others.

n: images
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.curation.neighbors import NearestImages

__all__ = ["Outliers", "outliers"]


@dataclass(frozen=True)
class Outliers:
    """How far every image is from the others."""

    score: Float[Tensor, "n"]
    """Mean distance (1 − cosine) to its neighbors."""
    limit: float
    """The score above which an image counts as an outlier: the upper quartile plus three times the
    interquartile range (Tukey's outer fence)."""
    number: list[int]
    """All images, the farthest first."""

    @property
    def count(self) -> int:
        """How many images are above the limit."""
        return int((self.score > self.limit).sum())


def outliers(neighbors: NearestImages) -> Outliers:
    """Images by their mean distance to their neighbors."""
    score = neighbors.distance.mean(1)
    low, high = score.double().quantile(torch.tensor([0.25, 0.75], dtype=torch.float64)).tolist()
    return Outliers(score, high + 3 * (high - low), score.argsort(descending=True, stable=True).tolist())
