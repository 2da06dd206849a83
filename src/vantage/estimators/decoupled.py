"""InfoNCE without the positive in its denominator.

b: queries
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.estimators.estimator import check_temperature, mean_of_positives
from vantage.records import Negatives, Scores

__all__ = ["Decoupled"]


@dataclass(frozen=True)
class Decoupled:
    """`InfoNCE` with the positive left out of the denominator: log Σ exp(b/τ) − a/τ.

    Ring's Algorithm 1 (Wu et al., arXiv 2010.02037) is written this way, although the paper's equations and code are
    not; Yeh et al. (arXiv 2110.06848) call it decoupled. It pulls even the closest positive closer, and is not bounded
    below. With several positives it is the mean over them; a query without negatives gives 0.
    """

    temperature: float = 0.2
    """τ: what cosines are divided by."""

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def __call__(self, positive: Scores, negatives: Negatives, step: int) -> Float[Tensor, "b"]:
        """One loss per query."""
        is_alone = torch.isneginf(negatives.log_sum)
        rest = negatives.log_sum.masked_fill(is_alone, 0.0)
        losses = rest[:, None] - positive.cosine.to(rest.dtype) / self.temperature
        return mean_of_positives(losses, positive).masked_fill(is_alone, 0.0)
