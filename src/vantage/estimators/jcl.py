"""Joint contrastive learning: infinitely many positive keys, through their mean and variance.

b: queries   p: positives of each query
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from vantage.estimators.estimator import check_temperature
from vantage.records import Negatives, Scores
from vantage.schedules import Constant, Schedule

__all__ = ["JCL", "bound"]


@dataclass(frozen=True)
class JCL:
    """An upper bound of InfoNCE's mean over infinitely many positive keys (Cai et al., arXiv 2009.14776, Eq. 8).

    log( exp(q·μ/τ + λ qᵀΣq / 2τ²) + Σ exp(b/τ) ) − q·μ/τ, for positive keys with mean μ and covariance Σ (divided by
    their number, not by one less). qᵀΣq is the population variance of the positives' cosines, so no d × d matrix is
    needed. With λ = 0 it is InfoNCE at the mean key; with one positive it is InfoNCE for any λ.

    In the paper the keys get no gradient: use a momentum encoder (`Momentum`), or `FixedViews` as the positives. The
    released code adds the variance to the cross-entropy of the lifted positive, which is the same number. `bound` is
    the formula in plain PyTorch; the estimator gives the same numbers and the same gradient in half the operations.
    """

    temperature: float = 0.2
    """τ: what cosines are divided by."""

    strength: Schedule = Constant(4.0)
    """λ: how much the spread of the positives counts, by step; 1 gives the bound itself, 4 is the paper's value. The
    released code raises it to λ over the E epochs of a run: ByEpoch(Linear(λ / E, λ, E − 1))."""

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def __call__(self, positive: Scores, negatives: Negatives, step: int) -> Float[Tensor, "b"]:
        """One loss per query."""
        keep = None if positive.keeps_all else positive.keep
        weight = 0.5 * self.strength(step) / self.temperature**2
        log_sum = negatives.log_sum
        cosine = positive.cosine.to(log_sum.dtype)
        return _Bound.apply(cosine, log_sum, keep, self.temperature, weight)  # pyright: ignore


def bound(
    cosine: Float[Tensor, "b p"], log_sum: Float[Tensor, "b"], temperature: float, strength: float
) -> Float[Tensor, "b"]:
    """The formula of `JCL` if every positive counts; the faster form is tested against it."""
    pull = cosine.mean(1) / temperature
    lift = pull + strength * cosine.var(1, correction=0) / (2 * temperature**2)
    return torch.logaddexp(lift, log_sum) - pull


class _Bound(torch.autograd.Function):
    """`bound` of the cosines that count: log(e^(pull + extra) + e^rest) − pull, for pull = mean / τ and
    extra = weight · variance.

    The gradient comes from the same pass. For so small a term, time goes into launching operations, and this launches
    half as many. With p for the negatives' share of the sum, the gradient is −p / τ for the mean and (1 − p) · weight
    for the variance.
    """

    @staticmethod
    def forward(
        ctx: Any, cosine: Tensor, log_sum: Tensor, keep: Tensor | None, temperature: float, weight: float
    ) -> Tensor:
        mean, deviation, count = _spread(cosine, keep)
        extra = deviation.square().sum(1, keepdim=True).mul_(weight / count)
        rest = torch.sub(log_sum[:, None], mean / temperature).sub_(extra)
        loss = softplus(rest, threshold=40.0).add_(extra)  # above it, the identity in float64
        negative = rest.sigmoid_()
        lift = deviation.mul_(2 * weight / count)
        pull = torch.addcmul(lift, negative, lift + 1 / (temperature * count), value=-1)
        if keep is not None:
            has_positive = keep.any(1, keepdim=True)
            loss, negative, pull = loss.mul_(has_positive), negative.mul_(has_positive), pull.mul_(keep)
        ctx.save_for_backward(pull, negative)
        return loss[:, 0]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:  # pyright: ignore
        pull, negative = ctx.saved_tensors
        rest = negative[:, 0] * gradient if ctx.needs_input_grad[1] else None
        return pull * gradient[:, None], rest, None, None, None


def _spread(cosine: Tensor, keep: Tensor | None) -> tuple[Float[Tensor, "b 1"], Float[Tensor, "b p"], int | Tensor]:
    """Mean of each query's cosines that count, each one's deviation from it (0 if dropped), and their number, at least
    1."""
    if keep is None:
        mean = cosine.mean(1, keepdim=True)
        return mean, cosine - mean, cosine.shape[1]
    count = keep.sum(1, keepdim=True).clamp(min=1).to(cosine.dtype)
    mean = cosine.masked_fill(~keep, 0.0).sum(1, keepdim=True) / count
    return mean, (cosine - mean).masked_fill_(~keep, 0.0), count
