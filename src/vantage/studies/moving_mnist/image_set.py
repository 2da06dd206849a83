"""Digits and backgrounds in memory, from any source of labeled images.

n: images   c: channels   s: side in pixels   h, w: height and width in pixels
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int, UInt8
from torch import Tensor
from torch.nn.functional import interpolate

from vantage.data.sources.source import Source, labels_of
from vantage.errors import DataError

__all__ = ["DIGIT", "ImageSet", "load_backgrounds", "check_backgrounds", "check_digits", "load_digits"]

DIGIT = 28
"""Side of a digit, in pixels."""

_GRAY = (299, 587, 114)  # thousandths, ITU-R BT.601; gray pixels are unchanged
_PART = 4096  # images converted to gray at once


@dataclass(frozen=True)
class ImageSet:
    """Labeled square images of one size, all in memory."""

    pixels: UInt8[Tensor, "n c s s"]
    """One channel for digits, three for backgrounds."""

    label: Int[Tensor, "n"]
    """Index of each image's class."""

    classes: tuple[str, ...]
    """Names of the classes."""

    def __len__(self) -> int:
        return len(self.pixels)

    def to(self, device: torch.device | str) -> "ImageSet":
        """The same images on a device."""
        return ImageSet(self.pixels.to(device), self.label.to(device), self.classes)


def check_digits(source: Source, classes: int, what: str = "digits") -> None:
    """Raises `DataError` unless there are labeled images of `classes` classes and the first has the size of a digit."""
    _rows_of_first_classes(source, classes, what)
    _digit(source.image(0), source.name(0))


def check_backgrounds(source: Source, classes: int, what: str = "backgrounds") -> None:
    """Raises `DataError` unless there are labeled images of `classes` classes."""
    _rows_of_first_classes(source, classes, what)


def load_digits(source: Source, classes: int = 10, workers: int = 2) -> ImageSet:
    """Load light digits on black, 28 pixels wide, as gray images; color images are converted to gray (BT.601).

    Only images of the first `classes` classes are used. Raises `DataError` for images of another size, images without
    labels, and too few classes.
    """
    digits = _load("digits", source, classes, _digit, workers)
    return replace(digits, pixels=torch.cat([_gray(part) for part in digits.pixels.split(_PART)]))


def load_backgrounds(source: Source, side: int = 96, classes: int = 10, workers: int = 2) -> ImageSet:
    """Load images, scale their short side to `side` pixels (bilinear, antialiased), and crop the center.

    The paper crops from STL-10, whose images are 96 pixels wide; `side` gives images of any size as much room for
    crops. Only images of the first `classes` classes are used. Raises `DataError` for images without labels and for
    too few classes.
    """
    return _load("backgrounds", source, classes, lambda image, _: _center(image, side), workers)


def _load(
    what: str,
    source: Source,
    classes: int,
    cut: Callable[[UInt8[Tensor, "3 h w"], str], UInt8[Tensor, "c s s"]],
    workers: int,
) -> ImageSet:
    rows, label = _rows_of_first_classes(source, classes, what)
    with ThreadPoolExecutor(max(1, workers)) as pool:
        images = list(pool.map(lambda number: cut(source.image(number), source.name(number)), rows.tolist()))
    return ImageSet(torch.stack(images), label, source.classes[:classes])


def _rows_of_first_classes(source: Source, classes: int, what: str) -> tuple[Int[Tensor, "n"], Int[Tensor, "n"]]:
    """The indices and labels of the images of the first classes."""
    names = source.classes
    if not names:
        raise DataError(
            f"the {what} have no labels, but the tasks need them: name a folder of class folders, or arrays with labels"
        )
    if len(names) < classes:
        raise DataError(
            f"the {what} are of {len(names)} classes, and {classes} are needed: name other images, or ask for fewer"
        )
    label = labels_of(source)
    missing = [names[n] for n in range(classes) if not bool((label == n).any())]
    if missing:
        raise DataError(f"the {what} have no image of {', '.join(missing[:5])}: every class needs at least one")
    rows = ((label >= 0) & (label < classes)).nonzero()[:, 0]
    return rows, label[rows]


def _digit(image: UInt8[Tensor, "3 h w"], name: str) -> UInt8[Tensor, "3 s s"]:
    if image.shape[1:] != (DIGIT, DIGIT):
        raise DataError(
            f"the digit {name} is {image.shape[2]} by {image.shape[1]} pixels: digits are {DIGIT} by {DIGIT}, light on"
            " black, as in MNIST"
        )
    return image


def _gray(images: UInt8[Tensor, "n 3 s s"]) -> UInt8[Tensor, "n 1 s s"]:
    weights = images.int() * torch.tensor(_GRAY, dtype=torch.int32)[:, None, None]
    return ((weights.sum(1, keepdim=True) + 500) // 1000).byte()


def _center(image: UInt8[Tensor, "3 h w"], side: int) -> UInt8[Tensor, "3 s s"]:
    height, width = image.shape[1:]
    scale = side / min(height, width)
    size = [max(side, round(height * scale)), max(side, round(width * scale))]
    if size != [height, width]:
        image = interpolate(image[None].float(), size, mode="bilinear", antialias=True)[0].round().byte()
    top, left = (size[0] - side) // 2, (size[1] - side) // 2
    return image[:, top : top + side, left : left + side].clone()
