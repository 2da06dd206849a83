"""Views that are two patches of one image at a fixed distance (InfoMin).

b: images   h, w: size of an image in pixels   p: side of a patch in pixels
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from vantage.errors import UserError
from vantage.views.colors.statistics import IMAGENET
from vantage.views.evaluation import EvaluationView, view_after
from vantage.views.operations.crops import MOST_SIDE
from vantage.views.operations.operation import Operation
from vantage.views.operations.perform import perform
from vantage.views.operations.share import share_in

__all__ = ["Patches"]


@dataclass(frozen=True)
class Patches:
    """Two patches of each image: one at (x, y), one `distance` pixels further right and down (Tian et al., arXiv
    2005.10243, section 3.3 and appendix B.1).

    (x, y) is uniform over the pixels where both patches fit. At distance 0 they are the same patch; below the patch's
    side they overlap. In the paper, 64-pixel patches of DIV2K transfer best to CIFAR-10 at distance 128.
    """

    size: int = 64
    """Side of a patch, in pixels."""
    distance: int = 128
    """d: how far right and down the second patch lies from the first, in pixels."""
    operations: tuple[Operation, ...] = (IMAGENET.normalize(),)
    """What is done to every patch on its own; the last is usually `Normalize`."""

    def __post_init__(self) -> None:
        if not (1 <= self.size <= MOST_SIDE and 0 <= self.distance <= MOST_SIDE):
            raise UserError(
                f"patches of {self.size} px at a distance of {self.distance} px: give at"
                f" least 1 px and at least 0 px, and at most {MOST_SIDE:,} px"
            )

    @property
    def count(self) -> int:
        """Two patches of each image."""
        return 2

    def crop(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> tuple[UInt8[Tensor, "3 p p"], ...]:
        """Both patches of one image. Raises `UserError` for one that is too small."""
        across, down = (self._room(side) for side in (image.shape[2], image.shape[1]))
        x, y = (int(torch.randint(room, (), generator=generator)) for room in (across, down))
        return tuple(image[:, y + d : y + d + self.size, x + d : x + d + self.size] for d in (0, self.distance))

    def finish(
        self, crops: tuple[UInt8[Tensor, "b 3 p p"], ...], generator: torch.Generator
    ) -> list[Float[Tensor, "b 3 p p"]]:
        """Both patches of each image."""
        if len(crops) != 2:
            raise UserError(f"two patches need two batches of crops, found {len(crops)}")
        return [perform(crop.contiguous(), self.operations, generator) for crop in crops]

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> list[Float[Tensor, "b 3 p p"]]:
        """Both patches of every image."""
        start, stop, whole = share_in(len(images), generator)  # other processes' images draw too, and are as large
        places = (min(max(number - start, 0), len(images) - 1) for number in range(whole))
        pairs = [self.crop(images[place], generator) for place in places][start:stop]
        return self.finish(tuple(torch.stack(part) for part in zip(*pairs, strict=True)), generator)

    def evaluation(self, view: int | None = None) -> EvaluationView:
        """The whole image, or the middle of a large one, at the size of a patch."""
        return view_after(self.size, self.operations)

    def _room(self, side: int) -> int:
        """How many positions a side of the image allows."""
        room = side - self.size - self.distance + 1
        if room < 1:
            raise UserError(
                f"two patches of {self.size} px at a distance of {self.distance} px need images of"
                f" {self.size + self.distance} px, found a side of {side} px: use smaller patches or a smaller distance"
            )
        return room
