"""The contracts of the three kinds of estimator, and what they share.

* `Estimator`: a value that needs only the sum over the negatives, and their number;
* `TableEstimator`: an estimator that looks at every negative;
* `EstimatorChoice`: the frozen choice of a `TableEstimator` that keeps state.

b: queries   p: positives of each query
"""

import math
from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from vantage.errors import UserError
from vantage.records import Negatives, Scores

__all__ = ["Estimator", "EstimatorChoice", "TableEstimator", "check_temperature", "cross_entropy", "mean_of_positives"]


@runtime_checkable
class Estimator(Protocol):
    """Compares positives with the sum over the negatives. Dropped pairs do not count; a query without positives gives
    0."""

    @property
    def temperature(self) -> float:
        """τ: what cosines are divided by."""
        ...

    def __call__(self, positive: Scores, negatives: Negatives, step: int) -> Float[Tensor, "b"]:
        """One loss per query; `step` counts optimizer steps from 0, for settings that depend on it."""
        ...


class TableEstimator(ABC):
    """Compares positives with every single negative: a frozen value, or an `nn.Module` if it keeps state."""

    @property
    def waits(self) -> bool:
        """Whether its next loss depends on the whole batch, so that a batch in accumulated parts must be shown to it
        once without gradients before."""
        return False

    @abstractmethod
    def __call__(self, positive: Scores, negative: Scores, step: int) -> Float[Tensor, "b"]:
        """One loss per query; `step` counts optimizer steps from 0, for settings that depend on it."""


@runtime_checkable
class EstimatorChoice(Protocol):
    """The frozen choice of a `TableEstimator` that keeps state."""

    def build(self, images: int) -> TableEstimator:
        """The estimator for a data set of `images` images: an `nn.Module` with all its state in registered buffers."""
        ...


def check_temperature(temperature: float) -> None:
    """Raises `UserError` unless τ is finite and above 0, and for a τ that is to be learned: the gradient would lack the
    negatives' part."""
    if isinstance(temperature, Tensor) and temperature.requires_grad:
        raise UserError(
            "the temperature is a tensor that requires a gradient, but its gradient would lack the part of the"
            " negatives: give a number, such as temperature.item()"
        )
    if not 0 < temperature < math.inf:
        raise UserError(f"temperature {temperature} must be a finite number above 0: papers use .07 to .5")


def cross_entropy(pull: Float[Tensor, "b *p"], log_sum: Float[Tensor, "b *#p"]) -> Float[Tensor, "b *p"]:
    """log(exp(pull) + exp(log_sum)) − pull."""
    # Above this threshold softplus is the identity in float64; torch's default of 20 is off by 2e-9.
    return softplus(log_sum - pull, threshold=40.0)


def mean_of_positives(value: Float[Tensor, "b p"], positive: Scores) -> Float[Tensor, "b"]:
    """Mean over the positives that count; 0 for a query without positives."""
    keep = positive.keep
    return value.masked_fill(~keep, 0.0).sum(1) / keep.sum(1).clamp(min=1)
