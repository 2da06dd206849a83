"""How views of each image are made: a crop, then operations on whole batches, in sequence.

b: images   c: channels of a view   h, w: size of an image in pixels   s: size of a view in pixels
t: size of a crop in pixels, which is that of the view, or larger
"""

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from vantage.errors import UserError
from vantage.views.evaluation import EvaluationView, view_after
from vantage.views.operations.crops import Crop, CropOfAnySide
from vantage.views.operations.operation import Operation
from vantage.views.operations.perform import perform, perform_each
from vantage.views.operations.shrink import Shrink


@runtime_checkable
class ViewMaker(Protocol):
    """Makes the views of a contrastive method."""

    @property
    def count(self) -> int:
        """How many views of each image are made."""
        ...

    def crop(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> tuple[UInt8[Tensor, "3 _ _"], ...]:
        """The first part of the work, done where an image of any size is decoded. Returns small uint8 images."""
        ...

    def finish(
        self, crops: tuple[UInt8[Tensor, "b 3 _ _"], ...], generator: torch.Generator
    ) -> list[Float[Tensor, "b ..."]]:
        """The rest of the work, for a batch of what `crop` returned, on its device. With several processes the batch is
        a share of the joint one: draw random numbers with `draw_share`, or all shares get the same ones."""
        ...

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> list[Float[Tensor, "b ..."]]:
        """All of the work at once, for a batch of whole images on their device; random numbers as in `finish`."""
        ...

    def evaluation(self, view: int | None = None) -> EvaluationView:
        """The view in which to evaluate an encoder that was trained on view number `view`, or on all views if
        omitted."""
        ...


@dataclass(frozen=True)
class Augmentation:
    """How one view is made: a crop, then operations from left to right.

    `crop_one` then `finish` is for images of different sizes, which are cropped where they are decoded; `batch` does
    both for images that are already on the device. The two crops differ by at most one gray level of 255, because
    `crop_one` rounds to whole levels. Every random number is drawn on the CPU from the generator passed in, so all
    devices make the same views.
    """

    crop: Crop
    """Which part of the image is seen."""
    operations: tuple[Operation, ...]
    """What is done to the crop, in this order; the last is usually `Normalize`."""

    def crop_one(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> UInt8[Tensor, "3 s s"]:
        """The crop of one image of any size."""
        return self.crop.crop_one(image, generator)

    def finish(self, crops: UInt8[Tensor, "b 3 t t"], generator: torch.Generator) -> Float[Tensor, "b c s s"]:
        """The view made from each crop. Crops that are larger than the view are scaled down first (`at_side`)."""
        return perform(crops, self.operations_on(crops), generator)

    def operations_on(self, crops: UInt8[Tensor, "b 3 t t"]) -> tuple[Operation, ...]:
        """What is done to crops of this size: they are scaled down first if they are larger than the view."""
        return (*((Shrink(self.crop.size),) if crops.shape[-1] > self.crop.size else ()), *self.operations)

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> Float[Tensor, "b c s s"]:
        """One view of each image."""
        return perform(images, (self.crop, *self.operations), generator)

    def at_side(self, side: int) -> "Augmentation":
        """The same view with `side` pixels: the same random numbers, crops, flips and colors, on fewer pixels.

        This view itself if it is not larger, or if its crop or one of its operations depends on the size (`Operation`).
        """
        same = all(getattr(operation, "any_size", False) for operation in self.operations)
        if self.crop.size <= side or not same or not isinstance(self.crop, CropOfAnySide):
            return self
        return replace(self, crop=self.crop.at_side(side))

    def evaluation(self) -> EvaluationView:
        """The same view without randomness: the center of the image, with the same color space and normalization."""
        return view_after(self.crop.size, self.operations)


@dataclass(frozen=True)
class Views:
    """Several views of each image, each with its own augmentation."""

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
        """The views made from the crops, in the same order."""
        if len(crops) != self.count:
            raise UserError(f"{self.count} views need {self.count} batches of crops, found {len(crops)}")
        operations = [view.operations_on(crop) for view, crop in zip(self.views, crops, strict=True)]
        return perform_each(crops, operations, generator)

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> list[Float[Tensor, "b 3 _ _"]]:
        """The views of every image."""
        return perform_each([images] * self.count, [(view.crop, *view.operations) for view in self.views], generator)

    def at_side(self, side: int) -> "Views":
        """The same views, each with `side` pixels if it is larger and does not depend on the size."""
        return Views(tuple(view.at_side(side) for view in self.views))

    def evaluation(self, view: int | None = None) -> EvaluationView:
        """Like that view, or like the first if omitted. Smaller views (multi-crop) are for training only."""
        return self.views[view_number(self, view)].evaluation()


def view_number(maker: ViewMaker, view: int | None) -> int:
    """The number of a view, by default the first. Raises `UserError` if there is no view of that number."""
    if not 0 <= (view or 0) < maker.count:
        raise UserError(f"view {view} was asked for, but there are {maker.count}: choose 0 to {maker.count - 1}")
    return view or 0
