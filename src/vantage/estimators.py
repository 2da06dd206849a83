"""What compares positives with negatives.

b: queries   p: positives of each query   n: negatives of each query
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from vantage import processes
from vantage.errors import UserError
from vantage.records import Scores

__all__ = ["Estimator", "InfoNCE", "NCE", "NCEState", "TableChoice", "TableEstimator"]


@runtime_checkable
class Estimator(Protocol):
    """Compares positives with the negatives' log-sum-exp. Dropped pairs do not count; a query without positives gives
    0."""

    @property
    def temperature(self) -> float:
        """τ: what cosines are divided by."""
        ...

    def __call__(self, positive: Scores, log_partition: Float[Tensor, "b"]) -> Float[Tensor, "b"]:
        """One loss per query."""
        ...


class TableEstimator(nn.Module, ABC):
    """Compares positives with every negative by itself, and may keep state in buffers."""

    @abstractmethod
    def forward(self, positive: Scores, negative: Scores) -> Float[Tensor, "b"]:
        """One loss per query."""


@runtime_checkable
class TableChoice(Protocol):
    """The frozen choice of a `TableEstimator`."""

    def build(self, images: int) -> TableEstimator:
        """The estimator for a data set of `images` images."""
        ...


def _positive_temperature(temperature: float) -> None:
    if not temperature > 0:
        raise UserError(f"temperature {temperature} must be above 0: papers use .07 to .5")


def _mean_of_kept(value: Float[Tensor, "b p"], positive: Scores) -> Float[Tensor, "b"]:
    kept = positive.keep
    return value.masked_fill(~kept, 0.0).sum(1) / kept.sum(1).clamp(min=1)


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
        _positive_temperature(self.temperature)

    def __call__(self, positive: Scores, log_partition: Float[Tensor, "b"]) -> Float[Tensor, "b"]:
        """One loss per query."""
        pull = (positive.cosine.to(log_partition.dtype) - self.margin) / self.temperature
        # The threshold is where float64 stops to see the curve; torch's own of 20 is off by 2e-9.
        return _mean_of_kept(softplus(log_partition[:, None] - pull, threshold=40.0), positive)


@dataclass(frozen=True)
class NCE:
    """Noise-contrastive estimation with a normaliser frozen after the first batch.

    Wu et al., arXiv 1805.01978, Eqs. 5–8, in the form of its release: P = exp(s/τ)/Z with Z = n·mean exp(s/τ) over
    the columns of the first batch; h = P/(P + K/n + 1e−7) for K negatives; loss −log h(positive) − Σ log(1 −
    h(negative)).
    """

    temperature: float = 0.07
    """τ: what cosines are divided by."""

    def __post_init__(self) -> None:
        _positive_temperature(self.temperature)

    def build(self, images: int) -> "NCEState":
        """The estimator for a bank of `images` rows."""
        return NCEState(self.temperature, images)


class NCEState(TableEstimator):
    """`NCE` with its normaliser, log Z, as a saved buffer; nan until the first training batch."""

    log_normaliser: Tensor

    def __init__(self, temperature: float, images: int) -> None:
        super().__init__()
        self.temperature, self.images = temperature, images
        self.register_buffer("log_normaliser", torch.tensor(torch.nan, dtype=torch.float64))

    def forward(self, positive: Scores, negative: Scores) -> Float[Tensor, "b"]:
        """One loss per query. The first call in training sets Z, over the batches of all processes."""
        near, far = positive.logits(self.temperature), negative.logits(self.temperature)
        if self.training and torch.isnan(self.log_normaliser):
            self._set_normaliser(near.detach(), far.detach())
        log_z = self.log_normaliser.to(near.dtype)
        log_noise = (negative.keep.sum(1, keepdim=True).to(near.dtype) / self.images + 1e-7).log()
        attract = torch.logaddexp(near - log_z, log_noise) - (near - log_z)
        repel = torch.logaddexp(far - log_z, log_noise) - log_noise
        attract = attract.masked_fill(~positive.keep, 0.0).sum(1)  # a dropped pair is −inf − −inf
        return (attract + repel.sum(1)) * positive.keep.any(1)

    def _set_normaliser(self, near: Tensor, far: Tensor) -> None:
        both = torch.cat([near, far], 1).double()
        columns = processes.total(torch.isfinite(both).sum())
        # Shifted by the largest possible logit, not by the batch's own, so that processes may add their parts.
        shift = 1.0 / self.temperature
        mass = processes.total((both - shift).exp().sum())
        self.log_normaliser.copy_(torch.log(self.images * mass / columns) + shift)
