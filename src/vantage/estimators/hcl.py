"""Hard-negative weighting: the more similar a negative is to the query, the more it counts.

b: queries
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.errors import UserError
from vantage.estimators.debiased import check_prior, log_debiased
from vantage.estimators.estimator import TableEstimator, check_temperature, cross_entropy, mean_of_positives
from vantage.records import Scores

__all__ = ["HCL"]


@dataclass(frozen=True)
class HCL(TableEstimator):
    """`Debiased` with the mean over the negatives weighted by e^(β b/τ): the harder a negative, the more it counts.

    Contrastive learning with hard negative samples (Robinson et al., arXiv 2010.04592) with M = 1 positive, as in
    the released code: Σ e^(b/τ) becomes N · Σ e^((1+β) b/τ) / Σ e^(β b/τ), and both sums get a gradient.

    With β = 0 it is `Debiased`; with β = 0 and τ⁺ = 0 it is InfoNCE. A query without negatives gives 0.
    """

    temperature: float = 0.5
    """τ: what cosines are divided by."""

    hardness: float = 1.0
    """β: how much more the hard negatives count, 0 or more; with 0 all count alike. The release lists models trained on
    STL-10 with .5, 1, 2 and 6, of which 1 is best."""

    prior: float = 0.1
    """τ⁺: the share of negatives that are of the query's own class, from 0 to below 1; a tenth for ten classes."""

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        check_prior(self.prior)
        if not 0 <= self.hardness < float("inf"):
            raise UserError(
                f"HCL(hardness={self.hardness}) is not a weight on hard negatives: give 0 or more, such as 1"
            )

    def __call__(self, positive: Scores, negative: Scores, step: int) -> Float[Tensor, "b"]:
        """One loss per query."""
        count = negative.count
        logits = torch.where((count > 0)[:, None], negative.logits(self.temperature), 0.0)
        log_sum = _log_sum(logits, 1 + self.hardness) - _log_sum(logits, self.hardness)
        log_sum = log_sum + count.clamp(min=1).to(log_sum.dtype).log()
        pull = positive.cosine / self.temperature
        rest = log_debiased(log_sum, count, pull, self.prior, self.temperature)
        return mean_of_positives(cross_entropy(pull, rest), positive)


def _log_sum(logits: Float[Tensor, "b n"], factor: float) -> Float[Tensor, "b"]:
    """log Σ e^(factor · logit) over the finite logits."""
    finite = torch.isfinite(logits)
    return torch.logsumexp(torch.where(finite, logits, 0.0).mul(factor).masked_fill(~finite, -torch.inf), 1)
