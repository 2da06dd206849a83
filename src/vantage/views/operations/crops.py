"""Crops of whole batches, one crop per image.

b: images   c: channels   h, w: size of the images in pixels   s: size of the crop in pixels   t: tries
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy
import torch
from jaxtyping import Float, Float64, Int, Int64, UInt8
from torch import Tensor
from torch.nn import functional

from vantage.data.resize import resize
from vantage.errors import UserError
from vantage.views.operations.operation import check_range
from vantage.views.operations.resampling import interpolation, resample

__all__ = ["MOST_SIDE", "TRIES", "Crop", "CropBoxes", "CropDraw", "CropOfAnySide", "RandomResizedCrop", "SquareCrop"]

TRIES = 10
"""How many boxes are drawn before the central one is used, as in torchvision."""

MOST_SIDE = 4096
"""Largest side of a view, in pixels. There is a limit because settings may come from strangers."""


@runtime_checkable
class Crop(Protocol):
    """Which square part of an image a view shows: an `Operation` on batches, also for one image of any size."""

    @property
    def size(self) -> int:
        """Side of the crop, in pixels."""
        ...

    def crop_one(self, image: UInt8[Tensor, "c h w"], generator: torch.Generator) -> UInt8[Tensor, "c s s"]:
        """One crop of one image, in whole gray levels."""
        ...

    def draw(self, count: int, generator: torch.Generator) -> Any:
        """What determines the crops of `count` images of any size: a CPU tensor, or a NamedTuple of CPU tensors, whose
        first axis is the image."""
        ...

    def apply(self, images: Float[Tensor, "b c h w"], parameters: Any) -> Float[Tensor, "b c s s"]:
        """The crops of a batch, as `parameters` say."""
        ...


@runtime_checkable
class CropOfAnySide(Crop, Protocol):
    """A crop that can show the same part of each image at another side."""

    def at_side(self, side: int) -> Crop:
        """A crop that draws the same numbers and shows the same parts, `side` pixels wide and high."""
        ...


class CropDraw(NamedTuple):
    """What determines a crop of an image of any size."""

    area: Float64[Tensor, "b t"]
    """Share of the image's area, per try."""
    aspect: Float64[Tensor, "b t"]
    """Width over height, per try."""
    down: Float64[Tensor, "b"]
    """Position of the crop from top (0) to bottom (1, never reached)."""
    right: Float64[Tensor, "b"]
    """Position of the crop from left (0) to right (1, never reached)."""


class CropBoxes(NamedTuple):
    """Rectangles, in whole pixels."""

    top: Int64[Tensor, "b"]
    """First row."""
    left: Int64[Tensor, "b"]
    """First column."""
    height: Int64[Tensor, "b"]
    """Number of rows."""
    width: Int64[Tensor, "b"]
    """Number of columns."""


@dataclass(frozen=True)
class RandomResizedCrop:
    """A random part of each image, resized to a square (arXiv 1409.4842; boxes are drawn as in torchvision)."""

    size: int
    """Side of the crop, in pixels."""
    scale: tuple[float, float] = (0.08, 1.0)
    """Least and largest share of the image's area, each in (0, 1]."""
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    """Least and largest width over height."""

    def __post_init__(self) -> None:
        if not 1 <= self.size <= MOST_SIDE:
            raise UserError(f"a crop's size must be 1 to {MOST_SIDE:,} pixels, found {self.size}")
        check_range("a crop's scale (shares of the image's area)", self.scale, 1.0)
        check_range("a crop's ratio (width over height)", self.ratio)

    def at_side(self, side: int) -> "RandomResizedCrop":
        """The same parts of the images, resized to another side."""
        return replace(self, size=side)

    def draw(self, count: int, generator: torch.Generator) -> CropDraw:
        """Parameters of `count` crops; they do not depend on the images' sizes."""
        raw = torch.rand(count, 2 * TRIES + 2, dtype=torch.float64, generator=generator)
        low, high = self.scale
        area = raw[:, :TRIES] * (high - low) + low
        low, high = math.log(self.ratio[0]), math.log(self.ratio[1])
        aspect = torch.exp(raw[:, TRIES:-2] * (high - low) + low)
        return CropDraw(area, aspect, raw[:, -2], raw[:, -1])

    def boxes(self, parameters: CropDraw, height: int, width: int) -> CropBoxes:
        """The rectangles that `parameters` determine in images of this size: the first try that fits, else the
        center."""
        area, aspect, down, right = (part.numpy() for part in parameters)
        pixels = area * (height * width)
        wide, high = numpy.rint(numpy.sqrt(pixels * aspect)), numpy.rint(numpy.sqrt(pixels / aspect))
        fits = (wide > 0) & (wide <= width) & (high > 0) & (high <= height)
        first = numpy.arange(len(fits)), fits.argmax(1)
        wide, high = wide[first], high[first]
        # A draw is below 1, but rounding of the product could reach one pixel too far.
        top = numpy.minimum(numpy.floor(down * (height - high + 1)), height - high)
        left = numpy.minimum(numpy.floor(right * (width - wide + 1)), width - wide)
        boxes = numpy.stack((top, left, high, wide)).astype(numpy.int64)
        boxes[:, ~fits[first]] = numpy.array(self._central(height, width))[:, None]
        return CropBoxes(*torch.from_numpy(boxes))

    def _box(self, raw: list[float], height: int, width: int) -> tuple[int, int, int, int]:
        """`boxes` for one row of random numbers, in plain Python: ten times as fast for a single image."""
        (least, most), (narrow, broad) = self.scale, map(math.log, self.ratio)
        for area, log_ratio in zip(raw[:TRIES], raw[TRIES:-2], strict=True):
            pixels = (area * (most - least) + least) * (height * width)
            aspect = math.exp(log_ratio * (broad - narrow) + narrow)
            wide, high = round(math.sqrt(pixels * aspect)), round(math.sqrt(pixels / aspect))
            if 0 < wide <= width and 0 < high <= height:
                down, right = int(raw[-2] * (height - high + 1)), int(raw[-1] * (width - wide + 1))
                return min(down, height - high), min(right, width - wide), high, wide
        return self._central(height, width)

    def _central(self, height: int, width: int) -> tuple[int, int, int, int]:
        low, high = self.ratio
        if width / height < low:
            box_height, box_width = min(height, max(1, round(width / low))), width
        elif width / height > high:
            box_height, box_width = height, min(width, max(1, round(height * high)))
        else:
            box_height, box_width = height, width
        return (height - box_height) // 2, (width - box_width) // 2, box_height, box_width

    def apply(
        self, images: Float[Tensor, "b c h w"], parameters: CropDraw
    ) -> Float[Tensor, "b c {self.size} {self.size}"]:
        """The crops, equal to torchvision's antialiased resized crop of float tensors."""
        height, width = images.shape[-2:]
        box = torch.stack(self.boxes(parameters, height, width))
        offset, length = box.to(images.device, images.dtype, non_blocking=True).view(2, 2, -1)
        if height == width:  # one call for the lines of both directions
            rows, columns = interpolation(offset.flatten(), length.flatten(), height, self.size).chunk(2)
        else:
            rows = interpolation(offset[0], length[0], height, self.size)
            columns = interpolation(offset[1], length[1], width, self.size)
        return resample(images, rows, columns.mT.contiguous())

    def crop_one(self, image: UInt8[Tensor, "c h w"], generator: torch.Generator) -> UInt8[Tensor, "c s s"]:
        """One crop of one image of any size, bit-equal to torchvision's antialiased resized crop of a uint8 tensor."""
        raw = torch.rand(2 * TRIES + 2, dtype=torch.float64, generator=generator).tolist()
        top, left, high, wide = self._box(raw, image.shape[-2], image.shape[-1])
        part = image[None, :, top : top + high, left : left + wide].contiguous(memory_format=torch.channels_last)
        # torch's uint8 kernel is fast on channels-last images, which is also how decoders lay out pixels.
        return functional.interpolate(part, [self.size, self.size], mode="bilinear", antialias=True)[0]


@dataclass(frozen=True)
class SquareCrop:
    """The shorter side resized, the central square, and a random square inside it, as in training on Places205."""

    size: int
    """Side of the crop, in pixels."""
    resize: int
    """What the shorter side of the image is resized to first, in pixels: the side of the central square."""

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.resize <= MOST_SIDE:
            raise UserError(
                f"a crop of {self.size} pixels from a square of {self.resize}: it must be at least 1 pixel and no"
                f" larger than the square, which has at most {MOST_SIDE:,} pixels"
            )

    def draw(self, count: int, generator: torch.Generator) -> Int[Tensor, "{count} 2"]:
        """First row and column of each crop inside the central square, all equally likely."""
        return torch.randint(self.resize - self.size + 1, (count, 2), generator=generator)

    def apply(
        self, images: Float[Tensor, "b c h w"], parameters: Int[Tensor, "b 2"]
    ) -> Float[Tensor, "b c {self.size} {self.size}"]:
        """The crops, resized as by torchvision's antialiased resize of float tensors."""
        high, wide = _sides(images.shape[-2], images.shape[-1], self.resize)
        top, left = (round((side - self.resize) / 2) for side in (high, wide))
        corner = parameters.to(images.device, non_blocking=True)
        rows = self._line(images.shape[-2], high, top + corner[:, 0])
        columns = self._line(images.shape[-1], wide, left + corner[:, 1])
        return resample(images, rows, columns.mT.contiguous())

    def crop_one(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> UInt8[Tensor, "3 s s"]:
        """One crop of one image of any size, resized as by torchvision's antialiased resize of uint8 tensors."""
        whole = resize(image, list(_sides(image.shape[-2], image.shape[-1], self.resize)))
        top, left = (round((side - self.resize) / 2) for side in whole.shape[-2:])
        down, right = self.draw(1, generator)[0].tolist()
        return whole[:, top + down :, left + right :][:, : self.size, : self.size].contiguous()

    def _line(self, source: int, target: int, first: Int[Tensor, "b"]) -> Float[Tensor, "b {self.size} n"]:
        """Matrices that resize a line of `source` pixels to `target`, and keep `size` of them from `first` on."""
        start, size = (torch.full((1,), value, device=first.device) for value in (0.0, float(source)))  # sends nothing
        whole = interpolation(start, size, source, target)[0]
        return whole[first[:, None] + torch.arange(self.size, device=first.device)]


def _sides(height: int, width: int, shorter: int) -> tuple[int, int]:
    """Height and width after the shorter side is resized to `shorter` pixels, rounded as in torchvision."""
    longer = int(shorter * max(height, width) / min(height, width))
    return (shorter, longer) if height <= width else (longer, shorter)
