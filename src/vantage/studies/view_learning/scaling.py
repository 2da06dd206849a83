"""Scaling of a flow's output channels before the critics.

b: images   h, w: height and width in pixels
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage.errors import UserError

__all__ = ["ByStatistics", "RunningScale", "Standardization", "Unchanged"]


@runtime_checkable
class Standardization(Protocol):
    """A frozen choice of how to scale the channels."""

    def build(self) -> nn.Module:
        """A module that maps images (b, 3, h, w) to images of the same shape."""
        ...


@dataclass(frozen=True)
class Unchanged:
    """Critics see the flow's output unchanged. At the start, this is the flow's input, which is normalized."""

    def build(self) -> nn.Module:
        """The identity."""
        return nn.Identity()


@dataclass(frozen=True)
class ByStatistics:
    """Standardize each channel: subtract its mean and divide by its deviation, both without gradients.

    This prevents a flow from changing the objective by scale alone. The statistics start with the first batch and
    follow later ones.
    """

    momentum: float = 0.01
    """How far the statistics move toward those of each batch; 0 keeps those of the first."""

    def __post_init__(self) -> None:
        if not 0 <= self.momentum <= 1:
            raise UserError(f"momentum is {self.momentum}: give a number from 0 to 1")

    def build(self) -> "RunningScale":
        """The module; its statistics are registered buffers, so they are saved in checkpoints."""
        return RunningScale(self.momentum)


class RunningScale(nn.Module):
    """The network of `ByStatistics`."""

    mean: Tensor
    variance: Tensor
    seen: Tensor

    def __init__(self, momentum: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("variance", torch.ones(3))
        self.register_buffer("seen", torch.zeros((), dtype=torch.bool))

    def forward(self, images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """The standardized channels; in training, the statistics are updated first."""
        if self.training:
            with torch.no_grad():
                pixels = images.movedim(1, 0).flatten(1)
                weight = torch.where(self.seen, self.momentum, 1.0).to(pixels.dtype)
                self.mean.lerp_(pixels.mean(1), weight)
                self.variance.lerp_(pixels.var(1, correction=0), weight)
                self.seen.fill_(True)
        deviation = (self.variance + 1e-6).sqrt()
        return (images - self.mean[:, None, None]) / deviation[:, None, None]
