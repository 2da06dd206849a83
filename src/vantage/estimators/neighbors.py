"""Estimators that also pull near neighbors; only the query's own positive is in the denominator.

b: queries   p: positives of each query
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.estimators.estimator import check_temperature, cross_entropy, mean_of_positives
from vantage.records import Negatives, Scores

__all__ = ["MeanNeighbors", "SoftNeighbors"]


@dataclass(frozen=True)
class SoftNeighbors:
    """log( exp(a₀/τ) + Σ exp(b/τ) ) − log Σ exp(a/τ) over all positives a; a₀ is the first one that counts.

    `neighbor_views` of Ring's release (arXiv 2010.02037), joined by log-sum-exp. Neighbors are only in the numerator,
    so the loss may be negative. With one positive it is InfoNCE. `Neighbors` puts the query's own positive first.
    """

    temperature: float = 0.07
    """τ: what cosines are divided by."""

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def __call__(self, positive: Scores, negatives: Negatives, step: int) -> Float[Tensor, "b"]:
        """One loss per query."""
        has_positive = positive.keep.any(1)
        logits = torch.where(has_positive[:, None], positive.logits(self.temperature).to(negatives.log_sum.dtype), 0.0)
        first = _first(logits, positive)
        # In this order, the term added last is exactly 0 for a query without neighbors.
        loss = cross_entropy(first, negatives.log_sum) + (first - torch.logsumexp(logits, 1))
        return torch.where(has_positive, loss, 0.0)


@dataclass(frozen=True)
class MeanNeighbors:
    """log( exp(a₀/τ) + Σ exp(b/τ) ) − mean(a)/τ over all positives a; a₀ is the first one that counts.

    `neighbor_views` of Ring's release (arXiv 2010.02037), joined by the mean of the logits. With one positive it is
    InfoNCE. `Neighbors` puts the query's own positive first.
    """

    temperature: float = 0.07
    """τ: what cosines are divided by."""

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def __call__(self, positive: Scores, negatives: Negatives, step: int) -> Float[Tensor, "b"]:
        """One loss per query."""
        has_positive = positive.keep.any(1)
        logits = positive.cosine.to(negatives.log_sum.dtype) / self.temperature
        first = _first(logits, positive)
        loss = cross_entropy(first, negatives.log_sum) + (first - mean_of_positives(logits, positive))
        return torch.where(has_positive, loss, 0.0)


def _first(logits: Float[Tensor, "b p"], positive: Scores) -> Float[Tensor, "b"]:
    """The first positive that counts; 0 for a query without positives."""
    leads = positive.keep & (positive.keep.cumsum(1) == 1)
    return torch.where(leads, logits, 0.0).sum(1)
