"""What every estimator offers, and what they share.

b: queries   p: positives of each query
"""

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from vantage.errors import UserError
from vantage.records import Scores

__all__ = ["Estimator", "TableChoice", "TableEstimator", "check_temperature", "mean_of_kept"]


@runtime_checkable
class Estimator(Protocol):
    """Compares positives with the negatives' log-sum-exp. Dropped pairs do not count; a query without positives gives
    0."""

    @property
    def temperature(self) -> float:
        """τ: what cosines are divided by."""
        ...

    def __call__(self, positive: Scores, log_partition: Float[Tensor, "b"], step: int) -> Float[Tensor, "b"]:
        """One loss per query; `step` counts optimizer steps from 0, for settings that follow it."""
        ...


class TableEstimator(nn.Module, ABC):
    """Compares positives with every negative by itself, and may keep state in buffers."""

    @abstractmethod
    def forward(self, positive: Scores, negative: Scores, step: int) -> Float[Tensor, "b"]:
        """One loss per query; `step` counts optimizer steps from 0, for settings that follow it."""


@runtime_checkable
class TableChoice(Protocol):
    """The frozen choice of a `TableEstimator`."""

    def build(self, images: int) -> TableEstimator:
        """The estimator for a data set of `images` images."""
        ...


def check_temperature(temperature: float) -> None:
    """Raises `UserError` unless τ is above 0."""
    if not temperature > 0:
        raise UserError(f"temperature {temperature} must be above 0: papers use .07 to .5")


def mean_of_kept(value: Float[Tensor, "b p"], positive: Scores) -> Float[Tensor, "b"]:
    """Mean over the positives that count; 0 for a query without."""
    kept = positive.keep
    return value.masked_fill(~kept, 0.0).sum(1) / kept.sum(1).clamp(min=1)
