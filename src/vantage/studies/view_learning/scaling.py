"""What is done to the channels of a flow before critics see them.

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
    """A frozen choice of what is done to the channels."""

    def build(self) -> nn.Module:
        """A module from images (b, 3, h, w) to images of that shape."""
        ...


@dataclass(frozen=True)
class Unchanged:
    """Critics see the channels as the flow gives them: at the start those that go into it, which are normalized."""

    def build(self) -> nn.Module:
        """Nothing is done."""
        return nn.Identity()


@dataclass(frozen=True)
class ByStatistics:
    """Each channel less its mean, over its deviation, which are constants to every gradient.

    So that a flow cannot please critics by size alone. They are those of the first batch, and follow later ones.
    """

    momentum: float = 0.01
    """How far the statistics move towards those of each batch; 0 keeps those of the first."""

    def __post_init__(self) -> None:
        if not 0 <= self.momentum <= 1:
            raise UserError(f"momentum is {self.momentum}: give a number from 0 to 1")

    def build(self) -> "RunningScale":
        """The module; its statistics are saved buffers."""
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
        """The channels, standardized; in training the statistics move first."""
        if self.training:
            with torch.no_grad():
                pixels = images.movedim(1, 0).flatten(1)
                weight = torch.where(self.seen, self.momentum, 1.0).to(pixels.dtype)
                self.mean.lerp_(pixels.mean(1), weight)
                self.variance.lerp_(pixels.var(1, correction=0), weight)
                self.seen.fill_(True)
        deviation = (self.variance + 1e-6).sqrt()
        return (images - self.mean[:, None, None]) / deviation[:, None, None]
