"""Views that are the low and the high frequencies of one image (InfoMin).

b: images   h, w: size of an image in pixels   s: side of a view in pixels
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from vantage.errors import UserError
from vantage.views.augmentation import Augmentation
from vantage.views.colors.statistics import IMAGENET, Statistics
from vantage.views.evaluation import EvaluationView
from vantage.views.operations.crops import RandomResizedCrop
from vantage.views.operations.filters import blur, gaussian
from vantage.views.operations.flip import HorizontalFlip

__all__ = ["Frequencies", "frequency_views"]


@dataclass(frozen=True)
class Frequencies:
    """One crop of each image as two views: blurred, and what the blur removed (Tian et al., arXiv 2005.10243, appendix
    B.3).

    v1 = blur(x, sigma) and v2 = x − v1, so that v1 + v2 = x. The blur is a Gaussian cut at 4 sigma with mirrored edges;
    the paper gives neither. It is applied after normalization, which changes nothing: v1 of the normalized image is the
    normalized v1, and v2 has no mean to subtract.
    """

    view: Augmentation
    """How the image to be split is made; its last operation is usually `Normalize`."""
    sigma: float = 0.7
    """Standard deviation of the blur, in pixels: on STL-10 the views share most at .7, and accuracy is best at 1."""

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise UserError(f"the frequencies are split at a blur of {self.sigma} pixels: give a number above 0")

    @property
    def count(self) -> int:
        """Two views of each image."""
        return 2

    def crop(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> tuple[UInt8[Tensor, "3 s s"], ...]:
        """The one crop that both views are made of."""
        return (self.view.crop_one(image, generator),)

    def finish(
        self, crops: tuple[UInt8[Tensor, "b 3 s s"], ...], generator: torch.Generator
    ) -> list[Float[Tensor, "b 3 s s"]]:
        """The low and the high frequencies of the view that each crop becomes."""
        if len(crops) != 1:
            raise UserError(f"frequencies are split from one batch of crops, found {len(crops)}")
        return self.split(self.view.finish(crops[0], generator))

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> list[Float[Tensor, "b 3 s s"]]:
        """The low and the high frequencies of one view of each image."""
        return self.split(self.view.batch(images, generator))

    def evaluation(self, view: int | None = None) -> EvaluationView:
        """The whole image, whichever of its frequencies the encoder was trained on."""
        return self.view.evaluation()

    @torch.no_grad()
    def split(self, images: Float[Tensor, "b 3 s s"]) -> list[Float[Tensor, "b 3 s s"]]:
        """Blurred images, and what the blur removed."""
        with torch.autocast(images.device.type, enabled=False):
            kernel = gaussian(torch.full((len(images),), self.sigma), math.ceil(4 * self.sigma))
            low = blur(images, kernel.to(images))
            return [low, images - low]


def frequency_views(size: int = 224, sigma: float = 0.7, statistics: Statistics = IMAGENET) -> Frequencies:
    """Views of InfoMin's frequency separation (arXiv 2005.10243, appendix B.3): crop from .2 of the image, flip,
    split."""
    crop = RandomResizedCrop(size, (0.2, 1.0))
    return Frequencies(Augmentation(crop, (HorizontalFlip(0.5), statistics.normalize())), sigma)
