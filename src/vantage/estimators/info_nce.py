"""Cross-entropy of picking the positive, with or without a margin.

b: queries   p: positives of each query
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.errors import UserError
from vantage.estimators.estimator import check_temperature, cross_entropy, mean_of_positives
from vantage.records import Negatives, Scores

__all__ = ["ArcNCE", "InfoNCE"]

_LEAST = 1e-8  # least sin²: at a cosine of ±1 the slope of the sine would be infinite


@dataclass(frozen=True)
class InfoNCE:
    """Cross-entropy of picking the positive: log(exp((a − m)/τ) + Σ exp(b/τ)) − (a − m)/τ.

    van den Oord et al., arXiv 1807.03748. The positive is in the denominator. With several positives it is the mean
    over them. With a margin m it is MarginNCE (InterCLR, Eq. 5): m > 0 demands more of the positive, m < 0 less.
    `ArcNCE` applies the margin to the angle.
    """

    temperature: float = 0.2
    """τ: what cosines are divided by."""

    margin: float = 0.0
    """m: subtracted from the positive's cosine."""

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def __call__(self, positive: Scores, negatives: Negatives, step: int) -> Float[Tensor, "b"]:
        """One loss per query."""
        pull = (positive.cosine.to(negatives.log_sum.dtype) - self.margin) / self.temperature
        return mean_of_positives(cross_entropy(pull, negatives.log_sum[:, None]), positive)


@dataclass(frozen=True)
class ArcNCE:
    """`InfoNCE` with the margin added to the angle θ of the positive: cos(θ + m) in place of cos θ − m.

    An option of InterCLR's release (arXiv 2008.11702), after ArcFace (Deng et al., arXiv 1801.07698). Where cos(θ + m)
    would no longer fall as θ grows (θ > π − m; for m < 0, θ < −m), cos θ − |m| sin m is used, as in both. This falls
    too, but there is a jump where the two meet. The slope at cosines of ±1 is bounded here; in the release it is
    infinite.
    """

    temperature: float = 0.2
    """τ: what cosines are divided by."""

    margin: float = 0.0
    """m: added to the positive's angle, in radians, from −π/2 to π/2; ArcFace has .5."""

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        if not abs(self.margin) <= math.pi / 2:
            raise UserError(f"ArcNCE(margin={self.margin}) turns too far: give radians from -1.57 to 1.57")

    def __call__(self, positive: Scores, negatives: Negatives, step: int) -> Float[Tensor, "b"]:
        """One loss per query."""
        pull = _turn(positive.cosine.to(negatives.log_sum.dtype), self.margin) / self.temperature
        return mean_of_positives(cross_entropy(pull, negatives.log_sum[:, None]), positive)


def _turn(cosine: Float[Tensor, "b p"], margin: float) -> Float[Tensor, "b p"]:
    """cos(θ + margin), or a function linear in cos θ where that would rise with θ."""
    sine = (1.0 - cosine.square()).clamp(min=_LEAST).sqrt()
    cosine_of_sum = cosine * math.cos(margin) - sine * math.sin(margin)
    falls = cosine > -math.cos(margin) if margin >= 0 else cosine < math.cos(margin)
    return torch.where(falls, cosine_of_sum, cosine - abs(margin) * math.sin(margin))
