"""Cross-entropy of picking the positive.

b: queries
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from vantage.estimators.estimator import check_temperature, mean_of_kept
from vantage.records import Scores

__all__ = ["InfoNCE"]


@dataclass(frozen=True)
class InfoNCE:
    """Cross-entropy of picking the positive: log(exp((a − m)/τ) + Σ exp(b/τ)) − (a − m)/τ.

    van den Oord et al., arXiv 1807.03748. The positive is in the denominator. With several positives, the mean over
    them. With a margin m it is MarginNCE (InterCLR, Eq. 4): m > 0 asks more of the positive, m < 0 less.
    """

    temperature: float = 0.2
    """τ: what cosines are divided by."""

    margin: float = 0.0
    """m: subtracted from the positive's cosine."""

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def __call__(self, positive: Scores, log_partition: Float[Tensor, "b"], step: int) -> Float[Tensor, "b"]:
        """One loss per query."""
        pull = (positive.cosine.to(log_partition.dtype) - self.margin) / self.temperature
        # The threshold is where float64 stops to see the curve; torch's own of 20 is off by 2e-9.
        return mean_of_kept(softplus(log_partition[:, None] - pull, threshold=40.0), positive)
