"""The debiased contrastive loss: the sum over the negatives, corrected for false negatives.

b: queries   p: positives of each query
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage.errors import UserError
from vantage.estimators.estimator import check_temperature, cross_entropy, mean_of_positives
from vantage.records import Negatives, Scores

__all__ = ["Debiased", "check_prior", "log_debiased"]


@dataclass(frozen=True)
class Debiased:
    """−log( e^(a/τ) / (e^(a/τ) + N·g) ), where g corrects the mean over the N negatives for those of the query's class.

    Debiased contrastive learning (Chuang et al., arXiv 2007.00224) with one positive sample in the correction (M = 1),
    as in the released code: g = max( (mean e^(b/τ) − τ⁺ e^(a/τ)) / (1 − τ⁺), e^(−1/τ) ). The positive a also gets a
    gradient through g. N is the number of negatives that the rules leave to the query; in the release it is
    2 · batch − 2.

    With τ⁺ = 0 it is InfoNCE, whose sum is N times the mean. With several positives it is the mean of their losses,
    each with its own positive in g; the paper's M > 1 would use the mean of all positives in each g. A query without
    negatives gives 0.
    """

    temperature: float = 0.5
    """τ: what cosines are divided by."""

    prior: float = 0.1
    """τ⁺: the share of negatives that are of the query's own class, from 0 to below 1; a tenth for ten classes."""

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        check_prior(self.prior)

    def __call__(self, positive: Scores, negatives: Negatives, step: int) -> Float[Tensor, "b"]:
        """One loss per query."""
        pull = positive.cosine.to(negatives.log_sum.dtype) / self.temperature
        rest = log_debiased(negatives.log_sum, negatives.count, pull, self.prior, self.temperature)
        return mean_of_positives(cross_entropy(pull, rest), positive)


def check_prior(prior: float) -> None:
    """Raises `UserError` unless τ⁺ is a share below 1."""
    if not 0 <= prior < 1:
        raise UserError(f"prior {prior} is not a share of the negatives: give one from 0 to below 1, such as 0.1")


def log_debiased(
    log_sum: Float[Tensor, "b"], count: Int[Tensor, "b"], pull: Float[Tensor, "b p"], prior: float, temperature: float
) -> Float[Tensor, "b p"]:
    """log(N·g) for each positive, from log Σ e^(b/τ) and `pull` = a/τ; −inf for a query without negatives."""
    has_negatives = count[:, None] > 0
    total = torch.where(has_negatives, log_sum[:, None], 0.0)
    log_count = count[:, None].clamp(min=1).to(total.dtype).log()
    if prior == 0:
        return torch.where(has_negatives, total, -torch.inf).expand_as(pull)
    # Σ e^(b/τ) − τ⁺ N e^(a/τ) as a share of the first term; if nothing remains, the floor is used.
    share = 1 - (math.log(prior) + log_count + pull - total).clamp(max=1.0).exp()
    nonempty = share > 0
    difference = total + torch.where(nonempty, share, 1.0).log() - math.log1p(-prior)
    floor = (log_count - 1 / temperature).expand_as(pull)
    debiased = torch.where(nonempty, torch.maximum(difference, floor), floor)
    return torch.where(has_negatives, debiased, -torch.inf)
