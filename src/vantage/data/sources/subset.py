"""A source made of some images of another.

h, w: height and width in pixels   n: images chosen   c: classes   s: blocks + 1
"""

from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Int, Int8, UInt8
from torch import Tensor

from vantage.data.sources.source import Source, blocks_of, files_of, marks_in, stamp_of
from vantage.errors import DataError
from vantage.storage.cache import hash_of

__all__ = ["SourceSubset"]


class SourceSubset:
    """Some images of a source, renumbered from 0 in the given order: a split, or all but the unreadable ones."""

    def __init__(self, source: Source, numbers: Int[Tensor, "n"] | Iterable[int]) -> None:
        given = torch.as_tensor(numbers if isinstance(numbers, Tensor) else list(numbers))
        if len(given) and (given.dtype == torch.bool or given.dtype.is_floating_point):
            raise DataError(
                f"a subset got numbers of type {given.dtype}: give the whole numbers of images, for a mask those where"
                " it holds (mask.nonzero().flatten())"
            )
        images = given.to("cpu", torch.int64).contiguous()
        if len(images) and not 0 <= int(images.min()) <= int(images.max()) < len(source):
            raise DataError(
                f"a subset asked for image numbers {int(images.min())} to {int(images.max())}, but the source holds "
                f"{len(source)} images: choose numbers from 0 to {len(source) - 1}"
            )
        self.source = source
        self.numbers = images

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of the whole source, so that the labels of two subsets agree."""
        return self.source.classes

    def __len__(self) -> int:
        return len(self.numbers)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`."""
        return self.source.image(int(self.numbers[number]))

    def label(self, number: int) -> int | None:
        """The index of the image's class, or None."""
        return self.source.label(int(self.numbers[number]))

    def name(self, number: int) -> str:
        """The name that the image has in the whole source."""
        return self.source.name(int(self.numbers[number]))

    def fingerprint(self) -> str:
        """A hash of the whole source's fingerprint and of the numbers."""
        return hash_of([self.source.fingerprint().encode(), self.numbers.numpy().tobytes()])

    def stamp(self) -> str:
        """The stamp of the whole source."""
        return stamp_of(self.source)

    def files(self) -> Iterator[str]:
        """The files of these images, if the whole source has a file for each of its images."""
        whole = list(files_of(self.source))
        return (whole[number] for number in self.numbers.tolist()) if whole else iter(())

    def marks(self) -> Int8[Tensor, "n c"] | None:
        """The rows of these images, if the whole source marks several classes per image."""
        whole = marks_in(self.source)
        return None if whole is None else whole[self.numbers]

    def blocks(self) -> Int[Tensor, "s"]:
        """The blocks of the whole source, if the images are in its order; otherwise one block."""
        if (self.numbers[1:] < self.numbers[:-1]).any():
            return torch.tensor([0, len(self)])
        return torch.searchsorted(self.numbers, blocks_of(self.source))
