"""The deterministic view that features are taken from: resize, central crop, color space, normalize.

b: images   h, w: size of an image in pixels   s: size of the crop in pixels   c: channels seen
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from vantage.composition.fitting import parts_of
from vantage.data.resize import resize
from vantage.errors import UserError
from vantage.views.colors.spaces import RGB, ColorSpace, InSpace, Pick
from vantage.views.colors.statistics import Statistics
from vantage.views.operations.color import Normalize
from vantage.views.operations.crops import MOST_SIDE
from vantage.views.operations.operation import Operation
from vantage.views.operations.perform import perform
from vantage.views.operations.resampling import interpolation, resample

__all__ = ["EvaluationView", "Straight", "view_after"]

_MOST_PIXELS = 80_000_000
"""Most pixels of a resized image. Only the middle of a longer strip is seen: a strip one pixel wide would not fit in
memory once its shorter side is resized."""

_WHOLE = 96
"""Views up to this side, in pixels, show whole images; larger ones the center of a resize 8/7 as large (224 of 256)."""


@dataclass(frozen=True)
class EvaluationView:
    """Shorter side resized, center cropped, converted to a color space, normalized.

    `crop` then `finish` is for images of different sizes, `batch` for images of one size on the device. The two differ
    by at most one gray level of 255, because `crop` rounds to whole levels; if nothing is resized they are equal.
    """

    size: int
    """Side of the crop, in pixels."""
    resize: int
    """What the shorter side of the image is resized to before the crop, in pixels."""
    statistics: Statistics
    """Mean and standard deviation that the pixels are normalized with."""
    space: ColorSpace = RGB()
    """Color space that they are converted to first; its own statistics are not used here."""
    channels: tuple[int, ...] = (0, 1, 2)
    """Which channels of that space are seen, of 0, 1 and 2."""

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.resize <= 2 * MOST_SIDE:
            raise UserError(
                f"a central crop of {self.size} pixels after resizing the shorter side to {self.resize}: the crop must "
                f"be at least 1 pixel and no larger than the resized image, which has at most {2 * MOST_SIDE:,} pixels"
            )

    def crop(self, image: UInt8[Tensor, "3 h w"]) -> UInt8[Tensor, "3 {self.size} {self.size}"]:
        """The resized center of one image of any size, as torchvision's antialiased uint8 resize gives it."""
        if image.shape[-2:] == (self.resize, self.resize) == (self.size, self.size):
            return image
        image = _middle(image, self.resize)
        high, wide, top, left = self._place(image.shape[-2], image.shape[-1])
        whole = resize(image, [high, wide])
        return whole[:, top : top + self.size, left : left + self.size].contiguous()

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What is done to a crop: color space, normalization, channels."""
        convert = () if isinstance(self.space, RGB) else (InSpace(self.space),)
        pick = () if self.channels == (0, 1, 2) else (Pick(self.channels),)
        return (*convert, self.statistics.normalize(), *pick)

    def finish(self, crops: UInt8[Tensor, "b 3 s s"]) -> Float[Tensor, "b c s s"]:
        """The crops as normalized floats, on their device."""
        return perform(crops, self.operations, torch.Generator())

    def batch(self, images: UInt8[Tensor, "b 3 h w"]) -> Float[Tensor, "b c {self.size} {self.size}"]:
        """Crop and finish at once, for images of one size on their device."""
        height, width = images.shape[-2:]
        if height == width == self.resize == self.size:
            return self.finish(images)
        high, wide, top, left = self._place(height, width)
        rows = self._line(height, high, top, images.device)
        columns = self._line(width, wide, left, images.device).mT.contiguous()
        with torch.no_grad(), torch.autocast(images.device.type, enabled=False):
            crops = resample(images * (1 / 255), rows, columns)
            for operation in self.operations:
                crops = operation.apply(crops, torch.empty(len(crops), 0))
            return crops

    def _place(self, height: int, width: int) -> tuple[int, int, int, int]:
        """Height and width after the resize, and first row and column of the crop, rounded as torchvision does."""
        shorter, longer = min(height, width), max(height, width)
        long = int(self.resize * longer / shorter)
        high, wide = (self.resize, long) if height <= width else (long, self.resize)
        return high, wide, round((high - self.size) / 2), round((wide - self.size) / 2)

    def _line(self, source: int, target: int, start: int, device: torch.device) -> Float[Tensor, "1 s n"]:
        whole = interpolation(
            torch.zeros(1, device=device), torch.full((1,), float(source), device=device), source, target
        )
        return whole[:, start : start + self.size]


@dataclass(frozen=True)
class Straight:
    """The whole image as a square, as in released code for linear SVMs: the shorter side is resized, then both sides to
    the same size, without a crop. Color space, statistics and channels come from another view."""

    base: EvaluationView
    """The view whose sizes, color space, statistics and channels are used."""

    @property
    def size(self) -> int:
        """Side of the square, in pixels."""
        return self.base.size

    @property
    def statistics(self) -> Statistics:
        """The statistics of the other view."""
        return self.base.statistics

    @property
    def space(self) -> ColorSpace:
        """The color space of the other view."""
        return self.base.space

    @property
    def channels(self) -> tuple[int, ...]:
        """The channels of the other view."""
        return self.base.channels

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations of the other view."""
        return self.base.operations

    def crop(self, image: UInt8[Tensor, "3 h w"]) -> UInt8[Tensor, "3 {self.size} {self.size}"]:
        """One image of any size, resized twice as torchvision's antialiased uint8 resize gives it."""
        strip = _middle(image, self.base.resize) is not image  # a strip is resized only once
        smaller = image if strip else resize(image, [self.base.resize])
        return resize(smaller, [self.size, self.size]).contiguous()

    def finish(self, crops: UInt8[Tensor, "b 3 s s"]) -> Float[Tensor, "b c s s"]:
        """The squares as normalized floats, on their device."""
        return self.base.finish(crops)


def view_after(size: int, operations: tuple[Operation, ...]) -> EvaluationView:
    """The deterministic counterpart of a training view that is a crop of `size` pixels, then `operations`.

    The color space and the statistics are the last ones among the operations. Views of up to 96 pixels show whole
    images; larger ones show the center of a resize 8/7 as large (224 of 256). Raises `UserError` without a `Normalize`.
    """
    parts = list(parts_of(operations))
    normalizations = [part for part in parts if isinstance(part, Normalize)]
    spaces = [part.space for part in parts if isinstance(part, InSpace)]
    if not normalizations:
        raise UserError("a view without Normalize has no statistics to evaluate by: add Normalize to its operations")
    resize = size if size <= _WHOLE else round(size * 8 / 7)
    statistics = Statistics(normalizations[-1].mean, normalizations[-1].std)
    return EvaluationView(size, resize, statistics, spaces[-1] if spaces else RGB())


def _middle(image: UInt8[Tensor, "3 h w"], resize: int) -> UInt8[Tensor, "3 _ _"]:
    """The middle of a strip that would be too large once its shorter side is resized; any other image unchanged."""
    height, width = image.shape[-2:]
    most = max(1, _MOST_PIXELS // resize**2) * min(height, width)
    if max(height, width) <= most:
        return image
    high, wide = min(height, most), min(width, most)
    top, left = (height - high) // 2, (width - wide) // 2
    return image[:, top : top + high, left : left + wide]
