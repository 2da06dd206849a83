"""Mosaics of labeled images, each pixel with the class of its image.

n: mosaics   t: images of a mosaic   h, w: height and width of a mosaic in pixels
"""

import math

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from vantage import draws
from vantage.data.resize import resize
from vantage.data.sources.masked import IGNORE_INDEX
from vantage.data.sources.source import Source, labels_of, stamp_of
from vantage.errors import DataError
from vantage.storage.cache import hash_of

__all__ = ["Mosaics"]

"""Mixed into the seed of the order of the images."""


class Mosaics:
    """Square mosaics of images from a labeled source: a source of images with masks (`HasMasks`), made when they are
    asked for."""

    def __init__(self, source: Source, count: int, seed: int, across: int = 2, side: int = 32) -> None:
        """`count` mosaics of `across` by `across` images, drawn with `seed`; each is resized to a square of `side`
        pixels. All labeled images are used equally often, or differ by one.

        Raises `DataError` for a source without labels, or with more classes than a mask can hold.
        """
        if len(source.classes) > IGNORE_INDEX:
            raise DataError(f"{len(source.classes)} classes are too many for a mask: it holds up to {IGNORE_INDEX}")
        label = labels_of(source)
        labeled = (label >= 0).nonzero().squeeze(1)
        if not len(labeled):
            raise DataError(f"mosaics need labels, but none of the {len(source)} images has one")
        self.classes, self.across, self.side = source.classes, across, side
        self._source = source
        order = labeled[_places(len(labeled), count * across**2, seed)]
        self._images: Int[Tensor, "n t"] = order.view(count, across**2)
        self._label: Int[Tensor, "n t"] = label[self._images]

    def __len__(self) -> int:
        return len(self._images)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One mosaic as RGB, row by row from the top left; raises `UnreadableImage`."""
        square = [self.side, self.side]
        tiles = [resize(self._source.image(each), square) for each in self._images[number].tolist()]
        rows = [torch.cat(tiles[start : start + self.across], 2) for start in range(0, len(tiles), self.across)]
        return torch.cat(rows, 1)

    def mask(self, number: int) -> UInt8[Tensor, "h w"]:
        """The class of every pixel of one mosaic."""
        classes = self._label[number].view(self.across, self.across).to(torch.uint8)
        return classes.repeat_interleave(self.side, 0).repeat_interleave(self.side, 1)

    def label(self, number: int) -> None:
        """None: a mosaic as a whole has no class."""

    def name(self, number: int) -> str:
        """The names of its images."""
        return " + ".join(self._source.name(each) for each in self._images[number].tolist())

    def fingerprint(self) -> str:
        """A hash of the source's fingerprint, of which images are where, of their labels and of their size."""
        facts = (self._source.fingerprint(), "\n".join(self.classes), f"mosaics of {self.across} by {self.side}")
        places = (table.numpy().tobytes() for table in (self._images, self._label))
        return hash_of([*map(str.encode, facts), *places])

    def stamp(self) -> str:
        """The source's own stamp."""
        return stamp_of(self._source)


def _places(images: int, places: int, seed: int) -> Int[Tensor, "_"]:
    """The number of the image in each place: all images in a random order, then again in another one, and so on."""
    generator = torch.Generator().manual_seed(draws.mix(seed, draws.Purpose.MOSAIC))
    orders = [torch.randperm(images, generator=generator) for _ in range(math.ceil(places / images))]
    return torch.cat(orders)[:places]
