"""Gaussian blur of whole batches, one width per image.

b: images   m: images in a part of the batch   h, w: height and width in pixels   n: a side in pixels   k: taps
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from vantage.views.geometry import reflection, resample
from vantage.views.operation import check_probability, check_range, chosen, coin, uniform

MATRIX_SIDE = 96
"""Up to this side, in pixels, a blur is cheapest as two matrix products; above it, as two convolutions."""


class BlurDraw(NamedTuple):
    """Parameters of a blur."""

    on: Bool[Tensor, "b"]
    """Whether the image is blurred."""
    sigma: Float[Tensor, "b"]
    """Standard deviation of the Gaussian, in pixels."""


@dataclass(frozen=True)
class GaussianBlur:
    """Some images blurred by a Gaussian of a random width (SimCLR, arXiv 2002.05709).

    The kernel is a true Gaussian at whole pixels, cut at ceil(3 sigma_max) pixels for every image and brought to sum 1;
    edges are mirrored. PIL, which the papers' code used, comes near a Gaussian by three box filters and repeats the edge
    pixel: for sigma from 0.1 to 2 the two differ by about 1 grey level of 255 on average.
    """

    sigma: tuple[float, float] = (0.1, 2.0)
    """Least and largest standard deviation, in pixels."""
    probability: float = 0.5
    """Share of the images that are blurred."""

    def __post_init__(self) -> None:
        check_probability("a blur's probability", self.probability)
        check_range("a blur's sigma (pixels)", self.sigma, 0.0)

    @property
    def radius(self) -> int:
        """How far the kernel reaches to each side, in pixels."""
        return math.ceil(3 * self.sigma[1])

    def draw(self, count: int, generator: torch.Generator) -> BlurDraw:
        """Parameters of `count` images, drawn for the sharp ones too."""
        return BlurDraw(coin(count, self.probability, generator), uniform(count, self.sigma, generator))

    def apply(self, images: Float[Tensor, "b c h w"], drawn: BlurDraw) -> Float[Tensor, "b c h w"]:
        """The images, blurred where `drawn.on` is true."""
        which = chosen(drawn.on, images.device)
        sigma = drawn.sigma[drawn.on]
        if len(sigma) == 0:
            return images
        kernel = gaussian(sigma, self.radius).to(images.device, images.dtype, non_blocking=True)
        return images.index_copy(0, which, blur(images.index_select(0, which), kernel))


def gaussian(sigma: Float[Tensor, "m"], radius: int) -> Float[Tensor, "m k"]:
    """Kernels at whole pixels from -radius to radius, each of sum 1."""
    place = torch.arange(-radius, radius + 1, dtype=torch.float64)
    return torch.softmax(-0.5 * (place / sigma.double().unsqueeze(1)) ** 2, 1).to(sigma.dtype)


def blur(images: Float[Tensor, "m c h w"], kernel: Float[Tensor, "m k"]) -> Float[Tensor, "m c h w"]:
    """Each image filtered by its kernel along both axes, edges mirrored; images may be smaller than the kernel."""
    height, width = images.shape[-2:]
    radius = kernel.shape[1] // 2
    if max(height, width) <= MATRIX_SIDE or radius >= min(height, width):
        return resample(images, _filter(kernel, height), _filter(kernel, width).mT.contiguous())
    return _convolve(_convolve(images, kernel, (0, radius)), kernel, (radius, 0))


def _filter(kernel: Float[Tensor, "m k"], side: int) -> Float[Tensor, "m {side} {side}"]:
    """The kernels as matrices on a line of `side` pixels."""
    return (kernel @ _placement(side, kernel.shape[1] // 2, kernel.device)).view(-1, side, side)


@lru_cache(maxsize=64)
def _placement(side: int, radius: int, device: torch.device) -> Float[Tensor, "k {side*side}"]:
    """For each tap, the matrix that picks its pixel; row-major, one row per tap."""
    mirrored = reflection(side, radius).unfold(0, 2 * radius + 1, 1)
    return functional.one_hot(mirrored, side).permute(1, 0, 2).flatten(1).float().to(device)


def _convolve(
    images: Float[Tensor, "m c h w"], kernel: Float[Tensor, "m k"], pad: tuple[int, int]
) -> Float[Tensor, "m c h w"]:
    """Every image filtered along one axis; `pad` is the radius on that axis, 0 on the other."""
    count, channels, height, width = images.shape
    line = images.view(1, count * channels, height, width)
    line = functional.pad(line, (pad[1], pad[1], pad[0], pad[0]), mode="reflect")
    weight = kernel.repeat_interleave(channels, 0).view(count * channels, 1, *(2 * side + 1 for side in pad))
    return functional.conv2d(line, weight, groups=count * channels).view_as(images)
