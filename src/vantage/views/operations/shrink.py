"""Whole images scaled down, all in the same way.

b: images   c: channels   h, w: height and width in pixels   s: side of the result in pixels
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import interpolate

__all__ = ["Shrink", "scaled_down"]


def scaled_down(images: Float[Tensor, "b *rest h w"], side: int) -> Float[Tensor, "b *rest {side} {side}"]:
    """The images with a smaller side, bilinear and antialiased."""
    return interpolate(images, size=(side, side), mode="bilinear", antialias=True)


@dataclass(frozen=True)
class Shrink:
    """Square images scaled down to a smaller side, as an operation."""

    side: int
    """Side of the result, in pixels."""

    def draw(self, count: int, generator: torch.Generator) -> Float[Tensor, "{count} 0"]:
        """Nothing is random here."""
        return torch.empty(count, 0)

    def apply(
        self, images: Float[Tensor, "b c h w"], parameters: Float[Tensor, "b 0"]
    ) -> Float[Tensor, "b c {self.side} {self.side}"]:
        """The images, smaller."""
        return scaled_down(images, self.side)
