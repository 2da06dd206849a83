"""Images with what is to be found in them: boxes, masks and keypoints; and what a source of such images answers.

n: instances in an image   k: keypoints of an instance   h, w: height and width in pixels   m: instances chosen
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from vantage.errors import DataError

__all__ = ["Annotated", "Instances", "RunLengths", "check_size"]


@dataclass(frozen=True)
class RunLengths:
    """A mask as COCO keeps it: lengths of the runs of 0 and 1, column after column, in COCO's compressed letters."""

    height: int
    """Rows of the mask."""
    width: int
    """Columns of the mask."""
    counts: bytes
    """The lengths, compressed; `vantage.evaluate.protocols.detection.mask_of` reads them."""


@dataclass(frozen=True)
class Instances:
    """What one image shows, instance by instance."""

    box: Float[Tensor, "n 4"]
    """Left, top, right and bottom of each, in pixels from the image's upper left corner."""

    label: Int[Tensor, "n"]
    """The index of each one's class in the source's `classes`."""

    crowd: Bool[Tensor, "n"]
    """Whether it is a group that nobody has taken apart: never trained on, and what is found in it is not counted."""

    difficult: Bool[Tensor, "n"]
    """Whether it is hard to see (PASCAL VOC): trained on, not counted in testing."""

    area: Float[Tensor, "n"]
    """Pixels that it covers: of its mask where the annotation tells it, else of its box."""

    points: Float[Tensor, "n k 3"] | None = None
    """Column, row and visibility (0 not labeled, 1 hidden, 2 visible) of each keypoint; none where the source has no
    keypoints."""

    def __len__(self) -> int:
        return len(self.label)

    def of(self, numbers: Int[Tensor, "m"]) -> "Instances":
        """Some of the instances, in the order given."""
        return Instances(
            self.box[numbers],
            self.label[numbers],
            self.crowd[numbers],
            self.difficult[numbers],
            self.area[numbers],
            None if self.points is None else self.points[numbers],
        )


@runtime_checkable
class Annotated(Protocol):
    """A source of images (`vantage.data.Source`) that also tells what is where in each; `label` is None for all."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes in the order of their labels."""
        ...

    @property
    def keypoints(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the keypoints of each class that has any."""
        ...

    @property
    def has_masks(self) -> bool:
        """Whether the pixels of instances are told."""
        ...

    def __len__(self) -> int: ...

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`."""
        ...

    def label(self, number: int) -> int | None:
        """None: an image shows any number of classes."""
        ...

    def name(self, number: int) -> str:
        """The image's path relative to the place."""
        ...

    def size(self, number: int) -> tuple[int, int]:
        """Height and width of an image in pixels, as the annotation has them; no image is read."""
        ...

    def instances(self, number: int) -> Instances:
        """What an image shows."""
        ...

    def masks(self, number: int) -> tuple[RunLengths, ...]:
        """The pixels of each instance of an image; raises `DataError` where the source has none."""
        ...

    def fingerprint(self) -> str:
        """A hash of images and annotations that does not change with time stamps or the place they lie in."""
        ...


def check_size(image: UInt8[Tensor, "3 h w"], size: tuple[int, int], name: str, progress: str) -> None:
    """Raises `DataError` for an image of another height and width than its annotation, in `progress`, says."""
    height, width = image.shape[1:]
    if (height, width) != size:
        raise DataError(
            f"{name} has {width} x {height} pixels, but {progress} says {size[1]} x {size[0]}: its boxes would lie in"
            " wrong places"
        )
