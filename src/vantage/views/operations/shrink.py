"""Whole images scaled down, all in the same way.

b: images   c: channels   h, w: height and width in pixels   s: side of the result in pixels
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.views.operations.resampling import interpolation, resample

__all__ = ["Shrink"]


@dataclass(frozen=True)
class Shrink:
    """Square images scaled down to a smaller side, bilinear and antialiased."""

    side: int
    """Side of the result, in pixels."""

    def draw(self, count: int, generator: torch.Generator) -> Float[Tensor, "{count} 0"]:
        """Nothing is random here."""
        return torch.empty(count, 0)

    def apply(
        self, images: Float[Tensor, "b c h w"], parameters: Float[Tensor, "b 0"]
    ) -> Float[Tensor, "b c {self.side} {self.side}"]:
        """The images, smaller."""
        start, high, wide = (images.new_full((1,), length) for length in (0, *images.shape[-2:]))  # sends nothing
        rows = interpolation(start, high, images.shape[-2], self.side)
        columns = interpolation(start, wide, images.shape[-1], self.side).mT.contiguous()
        return resample(images, rows, columns)
