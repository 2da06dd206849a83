"""Jigsaw views: a part of each image cut into cells, a patch from every cell, and the patches in random order.

b: images   c: channels   h, w: size of an image in pixels   s: side of the part   n: patches   p: side of a patch
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Float64, Int64, UInt8
from torch import Tensor

from vantage.errors import UserError
from vantage.views.augmentation import ViewMaker
from vantage.views.colors.statistics import IMAGENET, Statistics
from vantage.views.evaluation import EvaluationView
from vantage.views.operations.color import ColorJitter, Grayscale
from vantage.views.operations.crops import Crop, RandomResizedCrop
from vantage.views.operations.flip import HorizontalFlip
from vantage.views.operations.operation import Operation
from vantage.views.operations.perform import perform
from vantage.views.operations.share import draw_share
from vantage.views.recipes import PAPER_SIZE, pycontrast_a_views, repeat_view

__all__ = ["Cut", "Jigsaw", "WithJigsaw", "pirl_views", "pycontrast_jigsaw", "vissl_jigsaw", "vissl_views"]

_CELL, _PATCH = 85, 64  # in pixels, for a whole view of 224
_VISSL = (ColorJitter(0.4, 0.4, 0.4, 0.2), Grayscale(0.2), HorizontalFlip(0.5))


class Cut(NamedTuple):
    """What determines the patches of images: a row for each image, a column for each position in the sequence."""

    cell: Int64[Tensor, "b n"]
    """Which cell, counted along the rows of the grid, is at each position: a permutation."""
    down: Float64[Tensor, "b n"]
    """Where in its cell the patch lies, from top (0) to bottom (1, never reached)."""
    right: Float64[Tensor, "b n"]
    """Where in its cell the patch lies, from left (0) to right (1, never reached)."""


@dataclass(frozen=True)
class Jigsaw:
    """The view of PIRL (Misra and van der Maaten, arXiv 1912.01991): n patches of an image in random order, of shape
    (b, n, c, p, p).

    A patch lies at a uniformly random pixel of its cell, so that neighboring patches do not fit together at their
    edges. The method permutes the patches' vectors before it concatenates them. Here the patches themselves are
    permuted, which is equivalent: an encoder sees each one alone, and BatchNorm's statistics are over the same patches
    as long as its groups hold whole images.
    """

    crop: Crop = RandomResizedCrop(255, (0.6, 1.0))
    """Which part of the image is cut up, drawn independently of the other views."""
    operations: tuple[Operation, ...] = (HorizontalFlip(0.5),)
    """What is done to that part before it is cut up."""
    patch_operations: tuple[Operation, ...] = (IMAGENET.normalize(),)
    """What is done to every patch on its own; the last is usually `Normalize`."""
    cells: int = 3
    """Rows and columns of the grid: 3 give nine patches. Pixels left over at the right and the bottom are not used."""
    patch: int = 64
    """Side of a patch, in pixels; at most that of a cell, which is the crop's side over `cells`, rounded down."""

    def __post_init__(self) -> None:
        if self.cells < 1 or not 1 <= self.patch <= self.crop.size // self.cells:
            raise UserError(
                f"a jigsaw of {self.cells} x {self.cells} patches of {self.patch} px does not fit in a crop of"
                f" {self.crop.size} px: give 1 to {self.crop.size // max(1, self.cells)} px, or a larger crop"
            )

    def crop_one(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> UInt8[Tensor, "3 s s"]:
        """The part of one image of any size that is to be cut up."""
        return self.crop.crop_one(image, generator)

    def finish(self, crops: UInt8[Tensor, "b 3 s s"], generator: torch.Generator) -> Float[Tensor, "b n 3 p p"]:
        """The patches of each crop."""
        return self._patches(perform(crops, self.operations, generator), generator)

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> Float[Tensor, "b n 3 p p"]:
        """The patches of each image."""
        return self._patches(perform(images, (self.crop, *self.operations), generator), generator)

    def draw(self, count: int, generator: torch.Generator) -> Cut:
        """What determines the patches of `count` images."""
        raw = torch.rand(count, 3, self.cells**2, dtype=torch.float64, generator=generator)
        return Cut(raw[:, 0].argsort(1), raw[:, 1], raw[:, 2])

    def cut(self, images: Float[Tensor, "b c s s"], parameters: Cut) -> Float[Tensor, "b n c p p"]:
        """The patches that `parameters` determine."""
        side = self.crop.size // self.cells
        room = side - self.patch
        # A draw is below 1, but rounding of the product could reach one pixel too far.
        down, right = ((share * (room + 1)).long().clamp(max=room) for share in (parameters.down, parameters.right))
        top = (parameters.cell // self.cells * side + down).to(images.device, non_blocking=True)
        left = (parameters.cell % self.cells * side + right).to(images.device, non_blocking=True)
        windows = images.unfold(2, self.patch, 1).unfold(3, self.patch, 1)  # a view: nothing is copied
        return windows[torch.arange(len(images), device=images.device)[:, None], :, top, left]

    def _patches(self, images: Float[Tensor, "b 3 s s"], generator: torch.Generator) -> Float[Tensor, "b n 3 p p"]:
        with torch.no_grad(), torch.autocast(images.device.type, enabled=False):
            patches = self.cut(images, draw_share(self.draw, len(images), generator)).flatten(0, 1)
            for operation in self.patch_operations:
                patches = operation.apply(patches, draw_share(operation.draw, len(patches), generator))
            return patches.unflatten(0, (len(images), self.cells**2))


@dataclass(frozen=True)
class WithJigsaw:
    """The views of another maker, then a jigsaw of the same image; its patches are a fifth axis."""

    views: ViewMaker
    """What makes the other views."""
    jigsaw: Jigsaw
    """How the last view is made."""

    @property
    def count(self) -> int:
        """How many views of each image are made, including the jigsaw."""
        return self.views.count + 1

    def crop(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> tuple[UInt8[Tensor, "3 _ _"], ...]:
        """The other views' crops, and the part of the image that is to be cut up."""
        return (*self.views.crop(image, generator), self.jigsaw.crop_one(image, generator))

    def finish(
        self, crops: tuple[UInt8[Tensor, "b 3 _ _"], ...], generator: torch.Generator
    ) -> list[Float[Tensor, "b ..."]]:
        """The views made from the crops, in the same order."""
        return [*self.views.finish(crops[:-1], generator), self.jigsaw.finish(crops[-1], generator)]

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> list[Float[Tensor, "b ..."]]:
        """The views of every image."""
        return [*self.views.batch(images, generator), self.jigsaw.batch(images, generator)]

    def evaluation(self, view: int | None = None) -> EvaluationView:
        """Like the other maker's views: an encoder of patches is evaluated on whole images too."""
        return self.views.evaluation(None if view == self.views.count else view)


def pycontrast_jigsaw(size: int = 224, statistics: Statistics = IMAGENET) -> Jigsaw:
    """The jigsaw of the PyContrast code, for PIRL and for InfoMin (arXiv 2005.10243): nine patches of 64 pixels from
    cells of 85, flipped as a whole, colors unchanged.

    If whole views have another `size`, cells and patches scale with it: 24 and 18 pixels at 64, 12 and 9 at 32. At
    each of these sizes the recipes' ResNets turn a patch into 2 x 2 positions in their last stage.
    """
    cell, patch = _lengths(size)
    return Jigsaw(RandomResizedCrop(3 * cell, (0.6, 1.0)), (HorizontalFlip(0.5),), (statistics.normalize(),), 3, patch)


def vissl_jigsaw(size: int = 224, statistics: Statistics = IMAGENET) -> Jigsaw:
    """`pycontrast_jigsaw` with jitter, grayscale and flip of every patch on its own, as PIRL's authors train in VISSL,
    without their photometric distortion."""
    cell, patch = _lengths(size)
    return Jigsaw(RandomResizedCrop(3 * cell, (0.6, 1.0)), (), (*_VISSL, statistics.normalize()), 3, patch)


def vissl_views(size: int = 224, statistics: Statistics = IMAGENET) -> WithJigsaw:
    """Views of PIRL as its authors train in VISSL: image and patches are changed by the same operations. The code's
    photometric distortion (posterize, sharpen, solarize and stretch two thirds of the images) is left out."""
    return WithJigsaw(repeat_view(size, 0.08, _VISSL, 1, statistics), vissl_jigsaw(size, statistics))


def pirl_views(size: int = 224, statistics: Statistics = IMAGENET) -> WithJigsaw:
    """Views of PIRL in the PyContrast code: `pycontrast_a_views` with crops from .08 of the image, and its jigsaw."""
    return WithJigsaw(pycontrast_a_views(size, 1, statistics, smallest_area=0.08), pycontrast_jigsaw(size, statistics))


def _lengths(size: int) -> tuple[int, int]:
    """Sides of a cell and of a patch, in pixels."""
    return max(1, round(_CELL * size / PAPER_SIZE)), max(1, round(_PATCH * size / PAPER_SIZE))
