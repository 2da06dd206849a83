"""Joint contrastive learning: infinitely many positive keys, through their mean and variance.

b: queries   p: positives of each query
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from vantage.estimators.estimator import check_temperature
from vantage.records import Scores
from vantage.schedules import Constant, Schedule

__all__ = ["JCL"]


@dataclass(frozen=True)
class JCL:
    """An upper bound of InfoNCE's mean over infinitely many positive keys (Cai et al., arXiv 2009.14776, Eq. 8).

    log( exp(q·μ/τ + λ qᵀΣq / 2τ²) + Σ exp(b/τ) ) − q·μ/τ, for positive keys of mean μ and covariance Σ, divided by
    their number, not by one less. qᵀΣq is the population variance of the positives' cosines, so no d × d matrix is
    made. With λ = 0 it is InfoNCE at the mean key; with one positive it is InfoNCE, whatever λ.

    The keys get no gradient in the paper: a slow network makes them (`Momentum`), or the positives are `FixedViews`.
    The released code adds the variance to the cross-entropy of the lifted positive, which is the same number.
    """

    temperature: float = 0.2
    """τ: what cosines are divided by."""

    strength: Schedule = Constant(4.0)
    """λ: how much the spread of the positives counts, by step; 1 is the bound itself, 4 the paper's. The
    released code climbs to λ over the E epochs of a run: ByEpoch(Linear(λ / E, λ, E − 1))."""

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def __call__(self, positive: Scores, log_partition: Float[Tensor, "b"], step: int) -> Float[Tensor, "b"]:
        """One loss per query."""
        mean, variance = _moments(positive, log_partition.dtype)
        # log(e^(pull + extra) + e^rest) − pull, for pull = mean / τ and extra = weight · variance, in few operations.
        weight = 0.5 * self.strength(step) / self.temperature**2
        rest = torch.sub(log_partition - mean / self.temperature, variance, alpha=weight)
        loss = torch.add(softplus(rest, threshold=40.0), variance, alpha=weight)  # 40: float64 sees no curve from there
        return loss if positive.all_kept else loss.masked_fill(~positive.keep.any(1), 0.0)


def _moments(positive: Scores, dtype: torch.dtype) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
    """Mean and population variance of each query's positive cosines; 0 where it has none."""
    cosine = positive.cosine.to(dtype)
    if positive.all_kept:
        variance, mean = torch.var_mean(cosine, 1, correction=0)
        return mean, variance
    kept, count = positive.keep, positive.keep.sum(1).clamp(min=1)
    mean = cosine.masked_fill(~kept, 0.0).sum(1) / count
    return mean, (cosine - mean[:, None]).masked_fill(~kept, 0.0).square().sum(1) / count
