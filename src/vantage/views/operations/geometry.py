"""Random resized crops and flips of whole batches, one crop per image, as two small matrix products.

b: images   c: channels   h, w: size of the images in pixels   s: size of the crop in pixels   t: tries

A crop resized bilinearly is linear in the pixels and separable, so it is rows @ image @ columns with an interpolation
matrix per image. The matrices equal torchvision's resized crop of tensors, antialiasing included; sampling grids would
read past the crop's edge. Lowering the precision of float32 matrix products (`torch.set_float32_matmul_precision`)
lowers theirs.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64, UInt8
from torch import Tensor
from torch.nn import functional

from vantage.errors import UserError
from vantage.views.operations.operation import check_probability, check_range, chosen, coin, put_back, taken

TRIES = 10
"""How often a box is drawn before the central one is taken, as in torchvision."""


class CropDraw(NamedTuple):
    """What decides a crop of an image of any size."""

    area: Float64[Tensor, "b t"]
    """Share of the image's area, per try."""
    aspect: Float64[Tensor, "b t"]
    """Width over height, per try."""
    down: Float64[Tensor, "b"]
    """Place of the crop from top (0) to bottom (1, never reached)."""
    right: Float64[Tensor, "b"]
    """Place of the crop from left (0) to right (1, never reached)."""


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
        if self.size < 1:
            raise UserError(f"a crop's size must be at least 1 pixel, found {self.size}")
        check_range("a crop's scale (shares of the image's area)", self.scale, 0.0, 1.0)
        check_range("a crop's ratio (width over height)", self.ratio, 0.0)

    def draw(self, count: int, generator: torch.Generator) -> CropDraw:
        """Parameters of `count` crops; they do not depend on the images' sizes."""
        raw = torch.rand(count, 2 * TRIES + 2, dtype=torch.float64, generator=generator)
        low, high = self.scale
        area = raw[:, :TRIES] * (high - low) + low
        low, high = math.log(self.ratio[0]), math.log(self.ratio[1])
        aspect = torch.exp(raw[:, TRIES:-2] * (high - low) + low)
        return CropDraw(area, aspect, raw[:, -2], raw[:, -1])

    def boxes(self, drawn: CropDraw, height: int, width: int) -> CropBoxes:
        """The rectangles that `drawn` means in images of that many pixels: the first try that fits, else the center."""
        area, aspect, down, right = (part.numpy() for part in drawn)
        pixels = area * (height * width)
        wide, high = numpy.rint(numpy.sqrt(pixels * aspect)), numpy.rint(numpy.sqrt(pixels / aspect))
        fits = (wide > 0) & (wide <= width) & (high > 0) & (high <= height)
        first = numpy.arange(len(fits)), fits.argmax(1)
        wide, high = wide[first], high[first]
        # A position of exactly 1 cannot be drawn, but rounding of the product could reach one pixel too far.
        top = numpy.minimum(numpy.floor(down * (height - high + 1)), height - high)
        left = numpy.minimum(numpy.floor(right * (width - wide + 1)), width - wide)
        found = numpy.stack((top, left, high, wide)).astype(numpy.int64)
        found[:, ~fits[first]] = numpy.array(self._central(height, width))[:, None]
        return CropBoxes(*torch.from_numpy(found))

    def _box(self, raw: list[float], height: int, width: int) -> tuple[int, int, int, int]:
        """`boxes` of what `draw` makes of one row of random numbers, in plain numbers: for one image ten times as
        fast."""
        (least, most), (narrow, broad) = self.scale, map(math.log, self.ratio)
        for one, other in zip(raw[:TRIES], raw[TRIES:-2], strict=True):
            pixels = (one * (most - least) + least) * (height * width)
            aspect = math.exp(other * (broad - narrow) + narrow)
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

    def apply(self, images: Float[Tensor, "b c h w"], drawn: CropDraw) -> Float[Tensor, "b c {self.size} {self.size}"]:
        """The crops, as torchvision's antialiased resized crop of float tensors gives them."""
        height, width = images.shape[-2:]
        box = self.boxes(drawn, height, width)
        top, left, high, wide = torch.stack(box).to(images.device, images.dtype, non_blocking=True)
        return resample(
            images,
            interpolation(top, high, height, self.size),
            interpolation(left, wide, width, self.size).mT.contiguous(),
        )

    def crop_one(self, image: UInt8[Tensor, "c h w"], generator: torch.Generator) -> UInt8[Tensor, "c s s"]:
        """One crop of one image of any size: exactly torchvision's antialiased resized crop of a uint8 tensor."""
        raw = torch.rand(2 * TRIES + 2, dtype=torch.float64, generator=generator).tolist()
        top, left, high, wide = self._box(raw, image.shape[-2], image.shape[-1])
        part = image[None, :, top : top + high, left : left + wide].contiguous(memory_format=torch.channels_last)
        # Channels last is where torch's uint8 kernel is fast, and how decoders lay out pixels.
        return functional.interpolate(part, [self.size, self.size], mode="bilinear", antialias=True)[0]


@dataclass(frozen=True)
class HorizontalFlip:
    """The mirror image, left for right, of some images."""

    probability: float = 0.5
    """Share of the images that are mirrored."""

    def __post_init__(self) -> None:
        check_probability("a flip's probability", self.probability)

    def draw(self, count: int, generator: torch.Generator) -> Bool[Tensor, "{count}"]:
        """Which of `count` images are mirrored."""
        return coin(count, self.probability, generator)

    def apply(self, images: Float[Tensor, "b c h w"], drawn: Bool[Tensor, "b"]) -> Float[Tensor, "b c h w"]:
        """The images, mirrored where `drawn` is true."""
        which = chosen(drawn, images.device)
        return put_back(images, which, taken(images, which).flip(3)) if len(which) else images


def interpolation(
    offset: Float[Tensor, "b"], length: Float[Tensor, "b"], source: int, target: int
) -> Float[Tensor, "b {target} {source}"]:
    """Matrices that resize the `length` pixels from `offset` on, of a line of `source` pixels, to `target` pixels.

    Bilinear, and antialiased where the line shrinks: a triangle as wide as the scale, cut at the ends and brought to
    sum 1.
    """
    scale = length / target
    steps = torch.arange(target, device=offset.device, dtype=offset.dtype) + 0.5
    pixels = torch.arange(source, device=offset.device, dtype=offset.dtype)
    center = offset.unsqueeze(1) + steps * scale.unsqueeze(1) - 0.5
    if source <= target:  # nothing can shrink: two taps, whose weights sum to 1 when the center stays inside
        first, last = offset.unsqueeze(1), (offset + length - 1).unsqueeze(1)
        center = torch.minimum(torch.maximum(center, first), last)
        return torch.sub(1, (center.unsqueeze(2) - pixels).abs_()).clamp_min_(0)
    reach = scale.clamp_min(1)[:, None, None]
    weight = torch.sub(1, (center.unsqueeze(2) - pixels).abs_().div_(reach)).clamp_min_(0)
    inside = (pixels >= offset.unsqueeze(1)) & (pixels < (offset + length).unsqueeze(1))
    weight.mul_(inside.unsqueeze(1))
    return weight.div_(weight.sum(2, keepdim=True))


def resample(
    images: Float[Tensor, "b c h w"], rows: Float[Tensor, "#b y h"], columns: Float[Tensor, "#b w x"]
) -> Float[Tensor, "b c y x"]:
    """rows @ image @ columns, for every image and channel."""
    count, channels, height, width = images.shape
    wide = torch.matmul(images.reshape(count, channels * height, width), columns)
    return torch.matmul(rows.unsqueeze(1), wide.view(count, channels, height, columns.shape[2]))


def reflection(size: int, radius: int) -> Int[Tensor, "n"]:
    """Where the pixels from -radius to size + radius - 1 lie when the line is mirrored at its end pixels."""
    if size == 1:
        return torch.zeros(1 + 2 * radius, dtype=torch.int64)
    period = 2 * (size - 1)
    place = torch.arange(-radius, size + radius).remainder(period)
    return torch.minimum(place, period - place)
