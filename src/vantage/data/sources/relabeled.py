"""The images of a source with other labels than its own.

h, w: height and width in pixels
"""

from collections.abc import Iterator

from jaxtyping import UInt8
from torch import Tensor

from vantage.data.sources.source import Source, files_of, stamp_of

__all__ = ["Relabeled", "Unlabeled"]


class Relabeled:
    """The same images under the same names; a subclass gives them classes and labels."""

    classes: tuple[str, ...] = ()

    def __init__(self, source: Source) -> None:
        self.source = source

    def __len__(self) -> int:
        return len(self.source)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`."""
        return self.source.image(number)

    def label(self, number: int) -> int | None:
        """The index of the image's class, or None."""
        raise NotImplementedError

    def name(self, number: int) -> str:
        """The name that the image has in the source."""
        return self.source.name(number)

    def fingerprint(self) -> str:
        """The fingerprint of the source: the images are the same."""
        return self.source.fingerprint()

    def stamp(self) -> str:
        """The source's own stamp."""
        return stamp_of(self.source)

    def files(self) -> Iterator[str]:
        """The files of the source."""
        return files_of(self.source)


class Unlabeled(Relabeled):
    """The same images, none of which has a label."""

    def label(self, number: int) -> None:
        """None: labels are dropped."""
