"""Views that are the low and the high frequencies of one image (InfoMin).

b: images   h, w: size of an image in pixels   s: side of a view in pixels
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from vantage.errors import UserError
from vantage.views.augmentation import Augmentation, view_number
from vantage.views.colors.spaces import RGB, InSpace, pick
from vantage.views.colors.statistics import IMAGENET, Statistics
from vantage.views.evaluation import EvaluationView
from vantage.views.operations.crops import RandomResizedCrop
from vantage.views.operations.filters import blur, gaussian
from vantage.views.operations.flip import HorizontalFlip
from vantage.views.operations.operation import Operation

__all__ = ["Frequencies", "frequency_views"]


@dataclass(frozen=True)
class Frequencies:
    """One crop of each image as two views: blurred, and what the blur removed (Tian et al., arXiv 2005.10243, appendix
    B.3).

    v1 = blur(x, sigma) and v2 = x − v1, so that v1 + v2 = x. The blur is a Gaussian cut at 4 sigma with mirrored edges;
    the paper gives neither. It is applied after normalization, which changes nothing: v1 of the normalized image is the
    normalized v1, and v2 has no mean to subtract. Evaluations use both bands: an encoder for each sees its own, an
    encoder for both sees one after the other, and the features are concatenated.
    """

    view: Augmentation
    """How the image to be split is made; its last operation is usually `Normalize`."""
    sigma: float = 0.7
    """Standard deviation of the blur, in pixels: on STL-10 shared information peaks at .7, accuracy at 1."""

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise UserError(f"the frequencies are split at a blur of {self.sigma} pixels: give a number above 0")

    @property
    def count(self) -> int:
        """Two views of each image."""
        return 2

    def crop(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> tuple[UInt8[Tensor, "3 s s"], ...]:
        """The single crop that both views are made from."""
        return (self.view.crop_one(image, generator),)

    def finish(
        self, crops: tuple[UInt8[Tensor, "b 3 s s"], ...], generator: torch.Generator
    ) -> list[Float[Tensor, "b 3 s s"]]:
        """The low and the high frequencies of the view made from each crop."""
        if len(crops) != 1:
            raise UserError(f"frequencies are split from one batch of crops, found {len(crops)}")
        return self.split(self.view.finish(crops[0], generator))

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> list[Float[Tensor, "b 3 s s"]]:
        """The low and the high frequencies of one view of each image."""
        return self.split(self.view.batch(images, generator))

    def evaluation(self, view: int | None = None) -> "BandsView":
        """The frequencies of that view; if omitted, both the low and the high ones."""
        base = self.view.evaluation()
        channels = (*range(6),) if view is None else ((0, 1, 2), (3, 4, 5))[view_number(self, view)]
        return BandsView(base.size, base.resize, base.statistics, base.space, channels, self.sigma)

    def split(self, images: Float[Tensor, "b 3 s s"]) -> list[Float[Tensor, "b 3 s s"]]:
        """Blurred images, and what the blur removed."""
        return list(_split(images, self.sigma))


@torch.no_grad()
def _split(images: Float[Tensor, "b 3 s s"], sigma: float) -> tuple[Float[Tensor, "b 3 s s"], Float[Tensor, "b 3 s s"]]:
    with torch.autocast(images.device.type, enabled=False):
        kernel = gaussian(torch.full((len(images),), sigma), math.ceil(4 * sigma))
        low = blur(images, kernel.to(images, non_blocking=True))
        return low, images - low


@dataclass(frozen=True)
class Bands:
    """The operation that splits an image into its low and high frequencies (six channels) and keeps some of them."""

    sigma: float
    """Standard deviation of the blur, in pixels."""
    channels: tuple[int, ...]
    """Which channels are kept: low frequencies are 0 to 2, high ones 3 to 5."""

    def draw(self, count: int, generator: torch.Generator) -> Float[Tensor, "{count} 0"]:
        """Nothing is random here."""
        return torch.empty(count, 0)

    def apply(self, images: Float[Tensor, "b 3 h w"], parameters: Float[Tensor, "b 0"]) -> Float[Tensor, "b _ h w"]:
        """Those channels."""
        return pick(torch.cat(_split(images, self.sigma), 1), self.channels)


@dataclass(frozen=True)
class BandsView(EvaluationView):
    """An image as its frequencies: six channels, the low frequencies of three colors, then the high ones."""

    channels: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    """Which of them are seen."""
    sigma: float = 0.7
    """Standard deviation of the blur that separates them, in pixels."""

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What is done to a crop: color space, normalization, frequencies."""
        convert = () if isinstance(self.space, RGB) else (InSpace(self.space),)
        return (*convert, self.statistics.normalize(), Bands(self.sigma, self.channels))


def frequency_views(size: int = 224, sigma: float = 0.7, statistics: Statistics = IMAGENET) -> Frequencies:
    """Views of InfoMin's frequency separation (arXiv 2005.10243, appendix B.3): crop from .2 of the image, flip,
    split."""
    crop = RandomResizedCrop(size, (0.2, 1.0))
    return Frequencies(Augmentation(crop, (HorizontalFlip(0.5), statistics.normalize())), sigma)
