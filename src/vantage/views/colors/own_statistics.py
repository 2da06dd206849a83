"""Means and standard deviations of the channels of your own images, in any color space.

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
    """Mean and standard deviation of each channel of `space` over the pixels of a data set, as `Normalize` takes them.

    At most `images` images are read (0: all), spread evenly over the set, one at a time, so that a set of any size
    fits. Every image has the same weight whatever its size, since all views have one size. `progress` is called with
    the number of images read so far. Raises `UserError` if there are no images, or if a channel is constant.
    """
    if images < 0 or not len(source):
        raise UserError(f"statistics of {images} images of {len(source)}: give a set of images, and 0 or more images")
    count = min(images or len(source), len(source))
    total = torch.zeros(2, 3, dtype=torch.float64)
    for step in range(count):
        total += _moments(source.image(step * len(source) // count), space)
        if progress is not None:
            progress(step + 1)
    mean, square = total / count
    deviation = (square - mean**2).clamp(min=0).sqrt()
    constant = [number for number, value in enumerate(deviation.tolist()) if value <= 1e-6 * (1 + abs(mean[number]))]
    if constant:
        raise UserError(
            f"channel {constant[0]} of {type(space).__name__} is {mean[constant[0]]:.4g} in every pixel of {count:,}"
            " images, so it cannot be normalized: use more images, or a color space in which they differ"
        )
    (m0, m1, m2), (s0, s1, s2) = mean.tolist(), deviation.tolist()
    return Statistics((m0, m1, m2), (s0, s1, s2))


def _moments(image: UInt8[Tensor, "3 h w"], space: ColorSpace) -> Float64[Tensor, "2 3"]:
    """Mean of each channel and of its square over the pixels of one image."""
    pixels = space.convert(image[None] / 255)[0].flatten(1).double()
    return torch.stack((pixels.mean(1), (pixels**2).mean(1)))
