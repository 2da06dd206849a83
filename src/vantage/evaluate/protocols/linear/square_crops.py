"""Squares cut anywhere out of the middle of an image, as Places205 is seen in training.

b: images   c: channels of a view   h, w: size of an image in pixels   s: side of a crop in pixels
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor
from torchvision.transforms.v2 import functional

from vantage.errors import UserError
from vantage.views.operations.geometry import interpolation, resample
from vantage.views.operations.operation import Operation
from vantage.views.operations.perform import perform

__all__ = ["SquareCrop", "SquareView"]


@dataclass(frozen=True)
class SquareCrop:
    """The shorter side resized, the center square of that side, and a square at random inside it."""

    size: int
    """Side of the crop, in pixels."""
    resize: int
    """What the shorter side of the image becomes before, in pixels: the side of the center square."""

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.resize:
            raise UserError(
                f"a crop of {self.size} pixels out of a square of {self.resize}: it must have at least 1 pixel, and no"
                " more than the square"
            )

    def draw(self, count: int, generator: torch.Generator) -> Int[Tensor, "{count} 2"]:
        """First row and column of each crop inside the center square, every place as likely."""
        return torch.randint(self.resize - self.size + 1, (count, 2), generator=generator)

    def apply(
        self, images: Float[Tensor, "b c h w"], drawn: Int[Tensor, "b 2"]
    ) -> Float[Tensor, "b c {self.size} {self.size}"]:
        """The crops, resized as torchvision's antialiased resize of float tensors does it."""
        high, wide = _sides(images.shape[-2], images.shape[-1], self.resize)
        top, left = (round((side - self.resize) / 2) for side in (high, wide))
        place = drawn.to(images.device, non_blocking=True)
        rows = self._line(images.shape[-2], high, top + place[:, 0])
        columns = self._line(images.shape[-1], wide, left + place[:, 1])
        return resample(images, rows, columns.mT.contiguous())

    def crop_one(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> UInt8[Tensor, "3 s s"]:
        """One crop of one image of any size, resized as torchvision's antialiased resize of bytes does it."""
        resized = functional.resize(image, list(_sides(image.shape[-2], image.shape[-1], self.resize)), antialias=True)
        top, left = (round((side - self.resize) / 2) for side in resized.shape[-2:])
        down, right = self.draw(1, generator)[0].tolist()
        return resized[:, top + down :, left + right :][:, : self.size, : self.size].contiguous()

    def _line(self, source: int, target: int, first: Int[Tensor, "b"]) -> Float[Tensor, "b {self.size} n"]:
        """What takes a line of `source` pixels to those from `first` on of one of `target` pixels."""
        ends = torch.tensor([[0.0], [float(source)]], device=first.device)
        whole = interpolation(ends[0], ends[1], source, target)[0]
        return whole[first[:, None] + torch.arange(self.size, device=first.device)]


@dataclass(frozen=True)
class SquareView:
    """A square crop, then operations from left to right: what `Augmentation` is to a random resized crop."""

    crop: SquareCrop
    """Which part of the image is seen."""
    operations: tuple[Operation, ...]
    """What is done to it, in this order."""

    def crop_one(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> UInt8[Tensor, "3 s s"]:
        """The crop of one image of any size."""
        return self.crop.crop_one(image, generator)

    def finish(self, crops: UInt8[Tensor, "b 3 s s"], generator: torch.Generator) -> Float[Tensor, "b c s s"]:
        """The view that each crop becomes."""
        return perform(crops, self.operations, generator)

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> Float[Tensor, "b c s s"]:
        """One view of each image."""
        return perform(images, (self.crop, *self.operations), generator)


def _sides(height: int, width: int, shorter: int) -> tuple[int, int]:
    """Height and width once the shorter side has so many pixels, rounded as torchvision does."""
    longer = int(shorter * max(height, width) / min(height, width))
    return (shorter, longer) if height <= width else (longer, shorter)
