"""Estimators that pull a query towards a whole neighborhood.

b: queries   p: positives of each query
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from vantage.estimators.estimator import check_temperature, cross_entropy
from vantage.records import Negatives, Scores

__all__ = ["LocalAggregation", "MeanAggregation", "PooledNCE"]

_LEAST = 1e-7  # added to the probability, in the release


@dataclass(frozen=True)
class LocalAggregation:
    """−log( Σ_{C∩B} exp(a/τ) / Σ_B exp(s/τ) + 1e−7 ): the probability of all positives together.

    Zhuang et al., arXiv 1903.12355, in the form of its release: the positives are the mates C∩B among the near rows B,
    and the negatives are the other rows of B, so lift and pull are both the soft maximum of the positives.
    `NearMates(k)` with the rules `(Hardest(k), OtherClusters())` gives these sets. Wu et al. write means in place of
    sums: `MeanAggregation`.

    A query without a near mate gives 0 and does not count; the release counts it as −log 1e−7 = 16.118, with no
    gradient.
    """

    temperature: float = 0.07
    """τ: what cosines are divided by."""

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def __call__(self, positive: Scores, negatives: Negatives, step: int) -> Float[Tensor, "b"]:
        """One loss per query."""
        has_positive = positive.keep.any(1)
        logits = positive.logits(self.temperature).to(negatives.log_sum.dtype)
        together = torch.logsumexp(torch.where(has_positive[:, None], logits, 0.0), 1)
        probability = -softplus(negatives.log_sum - together, threshold=40.0)  # its logarithm
        least = torch.full_like(probability, math.log(_LEAST))
        return torch.where(has_positive, -torch.logaddexp(probability, least), 0.0)


@dataclass(frozen=True)
class MeanAggregation:
    """log( mean_B exp(s/τ) ) − log( mean_C exp(a/τ) ): local aggregation as Wu et al. write it (arXiv 2010.02037, Eq.
    5).

    The mean over C is over the whole cluster (`ClusterMates`), that over B only over the near rows (`Hardest(k)`,
    including mates). With the sets of `LocalAggregation` the gradient is the same, and the value differs by
    log(|C| / |B|) and by the 1e−7 of the release. A query without mates or without near rows gives 0.
    """

    temperature: float = 0.07
    """τ: what cosines are divided by."""

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def __call__(self, positive: Scores, negatives: Negatives, step: int) -> Float[Tensor, "b"]:
        """One loss per query."""
        is_alone = torch.isneginf(negatives.log_sum)
        rest = (
            negatives.log_sum.masked_fill(is_alone, 0.0)
            - negatives.count.clamp(min=1).to(negatives.log_sum.dtype).log()
        )
        losses = rest - _log_mean_exp(positive, self.temperature, rest.dtype)
        return torch.where(positive.keep.any(1) & ~is_alone, losses, 0.0)


@dataclass(frozen=True)
class PooledNCE:
    """`InfoNCE` with one positive a that stands for all: exp(a/τ) = mean exp(aᵢ/τ).

    Ring's "+C_i" (Wu et al., arXiv 2010.02037, section 5): the positive is the mean over the cluster, as in Eq. 5, and
    the negatives stay the same. With one positive it is InfoNCE. For the mean of the losses, instead of the loss of
    the mean, use `InfoNCE`.
    """

    temperature: float = 0.07
    """τ: what cosines are divided by."""

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def __call__(self, positive: Scores, negatives: Negatives, step: int) -> Float[Tensor, "b"]:
        """One loss per query."""
        pull = _log_mean_exp(positive, self.temperature, negatives.log_sum.dtype)
        return torch.where(positive.keep.any(1), cross_entropy(pull, negatives.log_sum), 0.0)


def _log_mean_exp(positive: Scores, temperature: float, dtype: torch.dtype) -> Float[Tensor, "b"]:
    """log mean exp of the positives that count; 0 for a query without positives."""
    has_positive = positive.keep.any(1)
    logits = torch.where(has_positive[:, None], positive.logits(temperature).to(dtype), 0.0)
    count = torch.where(has_positive, positive.keep.sum(1), logits.shape[1])
    return torch.logsumexp(logits, 1) - count.to(dtype).log()
