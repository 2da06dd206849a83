"""Gaussian blur of whole batches, one width per image.

b: images   m: images in a part of the batch   h, w: height and width in pixels   k: taps   y, n: outputs and inputs of
a block
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from vantage.errors import UserError
from vantage.views.operations.operation import check_probability, check_range, coin, indices, put_back, select, uniform
from vantage.views.operations.resampling import reflection

BLOCK = 32
"""Pixels of a line filtered by one matrix product: more would multiply zeros, fewer are not worth the call."""


class BlurDraw(NamedTuple):
    """Parameters of a blur."""

    on: Bool[Tensor, "b"]
    """Whether the image is blurred."""
    sigma: Float[Tensor, "b"]
    """Standard deviation of the Gaussian, in pixels."""


@dataclass(frozen=True)
class GaussianBlur:
    """Some images blurred by a Gaussian of a random width (SimCLR, arXiv 2002.05709).

    The kernel is a true Gaussian at whole pixels, cut at ceil(reach · sigma_max) pixels for every image and normalized
    to sum 1; edges are mirrored. PIL, which the papers' code used, approximates a Gaussian by three box filters and
    repeats the edge pixel: for sigma from 0.1 to 2 the two differ by about 1 gray level of 255 on average.
    """

    sigma: tuple[float, float] = (0.1, 2.0)
    """Least and largest standard deviation, in pixels."""
    probability: float = 0.5
    """Share of the images that are blurred."""
    reach: float = 3.0
    """Where the kernel is cut, in multiples of the largest sigma: 3 gives 13 pixels for sigma 2; PyContrast uses 23
    pixels there, a reach of 5.5. Only a four-hundredth of the weight lies beyond 3 sigma."""

    def __post_init__(self) -> None:
        check_probability("a blur's probability", self.probability)
        check_range("a blur's sigma (pixels)", self.sigma)
        if not self.reach > 0:
            raise UserError(f"a blur's reach must be above 0 sigma, found {self.reach}")

    @property
    def radius(self) -> int:
        """How far the kernel reaches to each side, in pixels."""
        return math.ceil(self.reach * self.sigma[1])

    def draw(self, count: int, generator: torch.Generator) -> BlurDraw:
        """Parameters of `count` images, drawn for the unblurred ones too."""
        return BlurDraw(coin(count, self.probability, generator), uniform(count, self.sigma, generator))

    def apply(self, images: Float[Tensor, "b c h w"], parameters: BlurDraw) -> Float[Tensor, "b c h w"]:
        """The images, blurred where `parameters.on` is true."""
        which = indices(parameters.on, images.device)
        sigma = parameters.sigma[parameters.on]
        if len(sigma) == 0:
            return images
        kernel = gaussian(sigma, self.radius).to(images.device, images.dtype, non_blocking=True)
        return put_back(images, which, blur(select(images, which), kernel))


def gaussian(sigma: Float[Tensor, "m"], radius: int) -> Float[Tensor, "m k"]:
    """Kernels at whole pixels from -radius to radius, each of sum 1; taps too small to change a sum are 0.

    Some would be subnormal numbers, on which a CPU is twenty times as slow.
    """
    offset = torch.arange(-radius, radius + 1, dtype=torch.float64)
    kernel = torch.softmax(-0.5 * (offset / sigma.double().unsqueeze(1)) ** 2, 1)
    return torch.where(kernel > torch.finfo(sigma.dtype).eps ** 2, kernel, 0.0).to(sigma.dtype)


def blur(images: Float[Tensor, "m c h w"], kernel: Float[Tensor, "m k"]) -> Float[Tensor, "m c h w"]:
    """Each image filtered by its kernel along both axes, edges mirrored; images may be smaller than the kernel.

    A kernel per image would be a grouped convolution, which is twenty times as slow on a CPU for some batch sizes.
    Products with the blocks of a band matrix are equally fast for all.
    """
    count, channels, height, width = images.shape
    column_blocks = _blocks(kernel, height)
    row_blocks = column_blocks if width == height else _blocks(kernel, width)
    lines = images.reshape(count, channels * height, width)
    wide = torch.cat([lines[:, :, low:high] @ matrix.mT for low, high, matrix in row_blocks], 2).view(images.shape)
    return torch.cat([matrix.unsqueeze(1) @ wide[:, :, low:high] for low, high, matrix in column_blocks], 2)


def _blocks(kernel: Float[Tensor, "m k"], side: int) -> list[tuple[int, int, Float[Tensor, "m y n"]]]:
    """The filter on a line of `side` pixels, `BLOCK` outputs at a time: each one's range of inputs, and its matrix."""
    ranges, placement = _placement(side, kernel.shape[1] // 2, kernel.device)
    matrices = (kernel @ placement).split([(stop - start) * (high - low) for start, stop, low, high in ranges], 1)
    return [
        (low, high, matrix.view(len(kernel), stop - start, high - low))
        for (start, stop, low, high), matrix in zip(ranges, matrices, strict=True)
    ]


@lru_cache(maxsize=64)
def _placement(
    side: int, radius: int, device: torch.device
) -> tuple[list[tuple[int, int, int, int]], Float[Tensor, "k _"]]:
    """The blocks of a line: for each, the ranges of its outputs and inputs; and, for every tap, the matrices of all
    blocks (outputs x inputs), flattened and concatenated."""
    sources = reflection(side, radius).unfold(0, 2 * radius + 1, 1)
    ranges, matrices = [], []
    for start in range(0, side, BLOCK):
        part = sources[start : start + BLOCK]
        low, high = int(part.min()), int(part.max()) + 1
        ranges.append((start, start + len(part), low, high))
        matrices.append(functional.one_hot(part - low, high - low).permute(1, 0, 2).flatten(1))
    return ranges, torch.cat(matrices, 1).float().to(device)
