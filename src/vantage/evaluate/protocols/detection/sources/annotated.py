"""Annotated images: boxes, masks and keypoints; and the protocol of a source of such images.

n: instances in an image   k: keypoints of an instance   h, w: height and width in pixels   m: selected instances
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from vantage.data.sources.folder import Folder
from vantage.errors import DataError

__all__ = ["AnnotatedFolder", "AnnotatedSource", "Instances", "RunLengths"]


@dataclass(frozen=True)
class RunLengths:
    """A mask in COCO's form: lengths of the runs of 0 and 1, column by column, in COCO's compressed characters."""

    height: int
    """Rows of the mask."""
    width: int
    """Columns of the mask."""
    counts: bytes
    """The lengths, compressed; `vantage.evaluate.protocols.detection.mask_of` reads them."""


@dataclass(frozen=True)
class Instances:
    """The instances in one image."""

    box: Float[Tensor, "n 4"]
    """Left, top, right and bottom of each, in pixels from the image's upper left corner."""

    label: Int[Tensor, "n"]
    """The index of the class of each in the source's `classes`."""

    crowd: Bool[Tensor, "n"]
    """Whether it is a group without separate instances: never trained on, and detections in it are ignored."""

    difficult: Bool[Tensor, "n"]
    """Whether it is hard to see (PASCAL VOC): trained on, but ignored in testing."""

    area: Float[Tensor, "n"]
    """Number of its pixels: of its mask if annotated, else of its box."""

    points: Float[Tensor, "n k 3"] | None = None
    """Column, row and visibility (0 not labeled, 1 hidden, 2 visible) of each keypoint; None if the source has no
    keypoints."""

    def __len__(self) -> int:
        return len(self.label)

    def of(self, numbers: Int[Tensor, "m"]) -> "Instances":
        """Some of the instances, in this order."""
        return Instances(
            self.box[numbers],
            self.label[numbers],
            self.crowd[numbers],
            self.difficult[numbers],
            self.area[numbers],
            None if self.points is None else self.points[numbers],
        )


@runtime_checkable
class AnnotatedSource(Protocol):
    """A source of images (`vantage.data.Source`) with annotations of each; `label` is None for all."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of their labels."""
        ...

    @property
    def keypoints(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the keypoints of each class that has any."""
        ...

    @property
    def has_masks(self) -> bool:
        """Whether instances have masks."""
        ...

    def __len__(self) -> int: ...

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`."""
        ...

    def label(self, number: int) -> int | None:
        """None: an image shows any number of classes."""
        ...

    def name(self, number: int) -> str:
        """The image's path relative to the source's folder."""
        ...

    def size(self, number: int) -> tuple[int, int]:
        """Height and width of an image in pixels, from the annotations; no image is read."""
        ...

    def instances(self, number: int) -> Instances:
        """The instances in an image."""
        ...

    def masks(self, number: int) -> tuple[RunLengths, ...]:
        """The mask of each instance of an image; raises `DataError` if the source has none."""
        ...

    def fingerprint(self) -> str:
        """A hash of images and annotations that does not depend on time stamps or on their folder."""
        ...


class AnnotatedFolder(ABC):
    """Images of a folder, whose sizes their annotations state: what sources of different annotations share."""

    _files: Folder
    _stated_in: str
    """Where sizes are stated, in words."""

    def __len__(self) -> int:
        return len(self._files)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`, and `DataError` for one of another size than annotated."""
        image = self._files.image(number)
        (height, width), (stated_height, stated_width) = image.shape[1:], self.size(number)
        if (height, width) != (stated_height, stated_width):
            raise DataError(
                f"{self.name(number)} has {width} x {height} pixels, but {self._stated_in} says {stated_width} x"
                f" {stated_height}: its boxes would be misplaced"
            )
        return image

    def label(self, number: int) -> int | None:
        """None: an image shows any number of classes."""
        return None

    def name(self, number: int) -> str:
        """The image's path relative to its folder."""
        return self._files.name(number)

    @abstractmethod
    def size(self, number: int) -> tuple[int, int]:
        """Height and width of an image in pixels, as annotated."""

    def stamp(self) -> str:
        """A hash of the size and time of change of every image."""
        return self._files.stamp()

    def files(self) -> Iterator[str]:
        """The path of each image's file."""
        return self._files.files()
