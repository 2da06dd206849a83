"""Mirror images.

b: images   c: channels   h, w: height and width in pixels
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from vantage.views.operations.operation import check_probability, coin, indices, put_back, select

__all__ = ["HorizontalFlip"]


@dataclass(frozen=True)
class HorizontalFlip:
    """Some images mirrored, left to right."""

    any_size: ClassVar[bool] = True

    probability: float = 0.5
    """Share of the images that are mirrored."""

    def __post_init__(self) -> None:
        check_probability("a flip's probability", self.probability)

    def draw(self, count: int, generator: torch.Generator) -> Bool[Tensor, "{count}"]:
        """Which of `count` images are mirrored."""
        return coin(count, self.probability, generator)

    def apply(self, images: Float[Tensor, "b c h w"], parameters: Bool[Tensor, "b"]) -> Float[Tensor, "b c h w"]:
        """The images, mirrored where `parameters` is true."""
        which = indices(parameters, images.device)
        return put_back(images, which, select(images, which).flip(3)) if len(which) else images
