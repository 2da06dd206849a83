"""Means and standard deviations of the channels of one's own images, in any color space.

h, w: height and width in pixels
"""

from collections.abc import Callable

import torch
from jaxtyping import Float64, UInt8
from torch import Tensor

from vantage.data.sources.source import Source
from vantage.errors import UserError
from vantage.views.colors.spaces import RGB, ColorSpace
from vantage.views.colors.statistics import Statistics

__all__ = ["measured_statistics"]

_RGB = RGB()


def measured_statistics(
    source: Source,
    space: ColorSpace = _RGB,
    images: int = 5_000,
    progress: Callable[[int], None] | None = None,
) -> Statistics:
    """Mean and standard deviation of each channel of `space` over the pixels of a data set, what `Normalize` takes.

    At most `images` images are read, spread evenly over the set (0: all), one after the other, so that a set of any
    size streams by. Every image counts alike, whatever its size, since every view of it has the same. `progress` is
    told how many were read. Raises `UserError` where there are no images, or a channel is the same in every pixel.
    """
    if images < 0 or not len(source):
        raise UserError(f"statistics of {images} images of {len(source)}: give a set of images, and a number from 0 on")
    count = min(images or len(source), len(source))
    total = torch.zeros(2, 3, dtype=torch.float64)
    for place in range(count):
        total += _moments(source.image(place * len(source) // count), space)
        if progress is not None:
            progress(place + 1)
    mean, square = total / count
    deviation = (square - mean**2).clamp(min=0).sqrt()
    still = [number for number, value in enumerate(deviation.tolist()) if value <= 1e-6 * (1 + abs(mean[number]))]
    if still:
        raise UserError(
            f"channel {still[0]} of {type(space).__name__} is {mean[still[0]]:.4g} in every pixel of {count:,} images,"
            " so it cannot be normalized: look at more images, or take a color space in which they differ"
        )
    (m0, m1, m2), (s0, s1, s2) = mean.tolist(), deviation.tolist()
    return Statistics((m0, m1, m2), (s0, s1, s2))


def _moments(image: UInt8[Tensor, "3 h w"], space: ColorSpace) -> Float64[Tensor, "2 3"]:
    """Means of each channel and of its square, over the pixels of one image."""
    pixels = space.convert(image[None] / 255)[0].flatten(1).double()
    return torch.stack((pixels.mean(1), (pixels**2).mean(1)))
