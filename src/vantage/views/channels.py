"""Views that are channels of one image: what CMC contrasts.

b: images   h, w: size of an image in pixels   s: side of a view in pixels
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from vantage.composition.fitting import everywhere, parts_of
from vantage.errors import UserError
from vantage.views.augmentation import Augmentation, ViewMaker, view_number
from vantage.views.colors.learned import ONE_AND_TWO, LearnedSpace
from vantage.views.colors.spaces import ColorSpace, InSpace, Lab, pick
from vantage.views.evaluation import EvaluationView
from vantage.views.operations.color import ColorJitter, Normalize
from vantage.views.operations.crops import RandomResizedCrop
from vantage.views.operations.flip import HorizontalFlip
from vantage.views.operations.operation import Operation

__all__ = ["Channels", "cmc_views", "in_space", "pycontrast_c_views"]


@dataclass(frozen=True)
class Channels:
    """One crop of each image, its channels divided among the views (CMC, Tian et al., arXiv 1906.05849)."""

    view: Augmentation
    """What is done before the channels are divided; its last operations are usually `InSpace` and `Normalize`."""

    channels: tuple[tuple[int, ...], ...] = ONE_AND_TWO
    """Which channels each view sees: by default lightness, and the two color channels."""

    def __post_init__(self) -> None:
        if not self.channels or any(not part or not set(part) <= {0, 1, 2} for part in self.channels):
            raise UserError(f"Channels.channels is {self.channels}: give each view some of the channels 0, 1 and 2")

    @property
    def count(self) -> int:
        """How many views of each image are made."""
        return len(self.channels)

    def crop(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> tuple[UInt8[Tensor, "3 s s"], ...]:
        """The single crop that all views are made from."""
        return (self.view.crop_one(image, generator),)

    def finish(
        self, crops: tuple[UInt8[Tensor, "b 3 s s"], ...], generator: torch.Generator
    ) -> list[Float[Tensor, "b _ s s"]]:
        """The channels of each view."""
        if len(crops) != 1:
            raise UserError(f"channels are taken from one batch of crops, found {len(crops)}")
        return self._split(self.view.finish(crops[0], generator))

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> list[Float[Tensor, "b _ s s"]]:
        """The views of every image."""
        return self._split(self.view.batch(images, generator))

    def evaluation(self, view: int | None = None) -> EvaluationView:
        """The channels of that view; if omitted, all three."""
        whole = self.view.evaluation()
        return whole if view is None else replace(whole, channels=self.channels[view_number(self, view)])

    def _split(self, images: Float[Tensor, "b 3 s s"]) -> list[Float[Tensor, "b _ s s"]]:
        return [pick(images, part) for part in self.channels]


def cmc_views(size: int = 224, space: ColorSpace = Lab(), smallest_area: float = 0.08) -> Channels:
    """Views of CMC (arXiv 1906.05849): crop, flip, lightness versus color.

    `smallest_area` is the least share of the image that a crop takes: .08 with a ResNet, .2 with AlexNet. Up to 64
    pixels it is at least .2, as in all recipes.
    """
    return _channels_of(size, space, smallest_area, (HorizontalFlip(0.5),))


def pycontrast_c_views(size: int = 224, space: ColorSpace = Lab(), smallest_area: float = 0.08) -> Channels:
    """Views "C" of the PyContrast code: `cmc_views` with color jitter before the colors are converted."""
    return _channels_of(size, space, smallest_area, (HorizontalFlip(0.5), ColorJitter(0.4, 0.4, 0.4, 0.1)))


def in_space(views: ViewMaker, space: ColorSpace) -> Any:
    """The same views in another color space, normalized with its statistics. This is how learned views are used: if
    they were learned with other channels than the first and the others, `Channels` that have these take the learned
    ones.

    Raises `UserError` if the views do not convert to a color space.
    """
    if not any(isinstance(part, InSpace) for part in parts_of(views)):
        raise UserError(
            f"{type(views).__name__} convert to no color space, so there is none to replace: choose a method that"
            " contrasts channels, such as cmc"
        )
    learned = space.channels if isinstance(space, LearnedSpace) else ONE_AND_TWO

    def moved(part: Any) -> Any:
        if isinstance(part, Channels) and part.channels == ONE_AND_TWO:
            return replace(part, channels=learned)
        return _in_space(part, space) if isinstance(part, Augmentation) else part

    return everywhere(views, moved)


def _in_space(view: Augmentation, space: ColorSpace) -> Augmentation:
    """The same view, with the conversion and the first normalization after it replaced by those of `space`."""
    operations: list[Operation] = []
    normalize_next = False
    for operation in view.operations:
        if isinstance(operation, InSpace):
            operation, normalize_next = InSpace(space), True
        elif isinstance(operation, Normalize) and normalize_next:
            operation, normalize_next = space.statistics.normalize(), False
        operations.append(operation)
    return replace(view, operations=tuple(operations))


def _channels_of(size: int, space: ColorSpace, smallest_area: float, operations: tuple[Operation, ...]) -> Channels:
    least = max(smallest_area, 0.2) if size <= 64 else smallest_area
    crop = RandomResizedCrop(size, (least, 1.0))
    return Channels(Augmentation(crop, (*operations, InSpace(space), space.statistics.normalize())))
