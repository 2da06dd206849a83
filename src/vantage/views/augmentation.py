"""How one view is made, and several views of each image: a crop, then a row of operations on whole batches.

b: images   c: channels of a view   h, w: size of an image in pixels   s: size of a view in pixels
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from vantage.errors import UserError
from vantage.views.operations.geometry import RandomResizedCrop
from vantage.views.operations.operation import Operation, rows

PIECE = 1 << 21
"""Bytes of float pixels that are worked on at once on a CPU, so that every operation finds them in a core's own cache.

An image of an eighth of that is worked on alone: it is either changed or not, and never copied to be put in its place.
"""


@runtime_checkable
class ViewMaker(Protocol):
    """What makes the views of a contrastive method."""

    @property
    def count(self) -> int:
        """How many views of each image are made."""
        ...

    def crop(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> tuple[UInt8[Tensor, "3 _ _"], ...]:
        """The part of the work that is best done where one image of any size was decoded: small uint8 images."""
        ...

    def finish(
        self, crops: tuple[UInt8[Tensor, "b 3 _ _"], ...], generator: torch.Generator
    ) -> list[Float[Tensor, "b ..."]]:
        """The rest, for a batch of what `crop` gave, on the device where it lies."""
        ...

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> list[Float[Tensor, "b ..."]]:
        """All of the work, for a batch of whole images on their device."""
        ...


@dataclass(frozen=True)
class Augmentation:
    """How one view is made: a random resized crop, then operations from left to right.

    `crop_one` then `finish` is for images of different sizes, whose crops are cut where they are decoded; `batch` does
    both for images that lie on the device. The two crops differ by at most one gray level of 255, because `crop_one`
    rounds to whole ones. Every random number is drawn on the CPU from the generator given, so all devices make the same
    views.
    """

    crop: RandomResizedCrop
    """Which part of the image is seen."""
    operations: tuple[Operation, ...]
    """What is done to it, in this order; the last is usually `Normalize`."""

    def crop_one(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> UInt8[Tensor, "3 s s"]:
        """The crop of one image of any size."""
        return self.crop.crop_one(image, generator)

    def finish(self, crops: UInt8[Tensor, "b 3 s s"], generator: torch.Generator) -> Float[Tensor, "b c s s"]:
        """The view that each crop becomes."""
        return perform(crops, self.operations, generator)

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> Float[Tensor, "b c s s"]:
        """One view of each image."""
        return perform(images, (self.crop, *self.operations), generator)


@dataclass(frozen=True)
class Views:
    """Several views of each image, each made in its own way."""

    views: tuple[Augmentation, ...]
    """How each view is made."""

    def __post_init__(self) -> None:
        if not self.views:
            raise UserError("views of an image: at least one Augmentation is needed, found none")

    @property
    def count(self) -> int:
        """How many views of each image are made."""
        return len(self.views)

    def crop(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> tuple[UInt8[Tensor, "3 _ _"], ...]:
        """One crop per view of an image of any size."""
        return tuple(view.crop_one(image, generator) for view in self.views)

    def finish(
        self, crops: tuple[UInt8[Tensor, "b 3 _ _"], ...], generator: torch.Generator
    ) -> list[Float[Tensor, "b 3 _ _"]]:
        """The views that the crops become, in the same order."""
        if len(crops) != self.count:
            raise UserError(f"{self.count} views need {self.count} batches of crops, found {len(crops)}")
        return [view.finish(crop, generator) for view, crop in zip(self.views, crops, strict=True)]

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> list[Float[Tensor, "b 3 _ _"]]:
        """The views of every image."""
        return [view.batch(images, generator) for view in self.views]


def perform(
    images: UInt8[Tensor, "b 3 h w"], operations: tuple[Operation, ...], generator: torch.Generator
) -> Float[Tensor, "b c _ _"]:
    """The images as floats in [0, 1], changed by every operation in turn; nothing is kept for a gradient.

    Parameters are drawn for the whole batch, one operation after the other, so that the size of a piece changes
    nothing.
    """
    count = len(images)
    drawn = [operation.draw(count, generator) for operation in operations]
    piece = count if images.device.type != "cpu" else _piece(4 * images[:1].numel())
    # Mixed precision is for networks: under it these small matrix products would round pixels to 8 bits or fewer.
    with torch.no_grad(), torch.autocast(images.device.type, enabled=False):
        pieces = [
            _run(images, operations, drawn, start, start + piece) for start in range(0, max(count, 1), max(piece, 1))
        ]
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces)


def _piece(size: int) -> int:
    """How many images of `size` bytes are worked on at once on a CPU."""
    return 1 if 8 * size >= PIECE else PIECE // max(size, 1)


def _run(
    images: UInt8[Tensor, "b 3 h w"], operations: tuple[Operation, ...], drawn: list[Any], start: int, stop: int
) -> Float[Tensor, "m c _ _"]:
    """The images from `start` to `stop`, changed by every operation in turn."""
    part = images[start:stop].contiguous().float().mul_(1 / 255)  # one call for both is twice as slow
    for operation, parameters in zip(operations, drawn, strict=True):
        part = operation.apply(part, rows(parameters, start, stop))
    return part
