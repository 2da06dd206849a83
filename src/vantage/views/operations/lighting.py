"""AlexNet's lighting: every image shifted along the principal components of ImageNet's colors.

b: images   h, w: height and width in pixels
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.errors import UserError

__all__ = ["Lighting"]

_VARIANCE = (0.2175, 0.0188, 0.0045)
_DIRECTION = ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203))
"""Principal components of ImageNet's colors (from 0 to 1): a column for each, with rows for red, green and blue."""


@dataclass(frozen=True)
class Lighting:
    """The same color is added to all pixels of an image: the principal components of ImageNet's colors, each times
    its eigenvalue and a normally distributed number (Krizhevsky, Sutskever and Hinton, 2012, §4.1).

    It comes before the normalization; as in the published code, nothing is clipped to [0, 1] afterwards.
    """

    any_size: ClassVar[bool] = True

    strength: float = 0.1
    """Standard deviation of the random numbers."""

    def __post_init__(self) -> None:
        if not self.strength >= 0:
            raise UserError(f"lighting's strength must be at least 0, found {self.strength}")

    def draw(self, count: int, generator: torch.Generator) -> Float[Tensor, "{count} 3"]:
        """What is added to red, green and blue of `count` images."""
        along = torch.randn(count, 3, generator=generator) * self.strength
        return (along * torch.tensor(_VARIANCE)) @ torch.tensor(_DIRECTION).T

    def apply(self, images: Float[Tensor, "b 3 h w"], parameters: Float[Tensor, "b 3"]) -> Float[Tensor, "b 3 h w"]:
        """The images, each with its color added."""
        return images + parameters.to(images.device, non_blocking=True)[:, :, None, None]
