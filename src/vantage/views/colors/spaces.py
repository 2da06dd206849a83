"""Color spaces: what the three channels of an image mean, for views that see some of them (CMC, InfoMin).

Each follows scikit-image's function of the same name, on whole batches and on any device. If no paper gives
constants for normalization, they are means and standard deviations of 5,000 images of 50 classes of Tiny ImageNet.

b: images   c: channels picked   h, w: height and width in pixels
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.errors import UserError
from vantage.views.colors.statistics import IMAGENET, Statistics

__all__ = ["HSV", "RGB", "XYZ", "YIQ", "YUV", "ColorSpace", "InSpace", "Lab", "Pick", "YCbCr", "YDbDr"]

_Matrix = tuple[tuple[float, float, float], tuple[float, float, float], tuple[float, float, float]]

_XYZ: _Matrix = (
    (0.412453, 0.357580, 0.180423),
    (0.212671, 0.715160, 0.072169),
    (0.019334, 0.119193, 0.950227),
)
_WHITE = (0.95047, 1.0, 1.08883)  # D65, seen by the 2° observer
_YCBCR: _Matrix = (
    (65.481, 128.553, 24.966),
    (-37.797, -74.203, 112.0),
    (112.0, -93.786, -18.214),
)
_YIQ: _Matrix = (
    (0.299, 0.587, 0.114),
    (0.59590059, -0.27455667, -0.32134392),
    (0.21153661, -0.52273617, 0.31119955),
)
_YUV: _Matrix = (
    (0.299, 0.587, 0.114),
    (-0.14714119, -0.28886916, 0.43601035),
    (0.61497538, -0.51496512, -0.10001026),
)
_YDBDR: _Matrix = ((0.299, 0.587, 0.114), (-0.45, -0.883, 1.333), (-1.333, 1.116, 0.217))


@runtime_checkable
class ColorSpace(Protocol):
    """A frozen choice of what the three channels mean."""

    @property
    def statistics(self) -> Statistics:
        """What its channels are normalized with."""
        ...

    def convert(self, images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Red, green and blue from 0 to 1, converted to the channels of this space."""
        ...


@dataclass(frozen=True)
class RGB:
    """Red, green and blue."""

    statistics: Statistics = IMAGENET
    """Mean and standard deviation of the channels."""

    def convert(self, images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """The images as they are."""
        return images


@dataclass(frozen=True)
class Lab:
    """CIE L*a*b*: lightness from 0 to 100, then green to red and blue to yellow, for daylight (D65).

    The space of CMC (Tian et al., arXiv 1906.05849), with the constants of its release: the middle and half the range
    of each channel, not statistics of images.
    """

    statistics: Statistics = Statistics((50.0, 6.025, -6.6895), (50.0, 92.208, 101.1675))
    """What the channels are shifted and divided by."""

    def convert(self, images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Red, green and blue from 0 to 1 as L, a and b."""
        xyz = _mix(_linear(images), _XYZ) / _constant(_WHITE, images.dtype, images.device)[:, None, None]
        roots = torch.where(xyz > 0.008856, xyz.clamp(min=1e-6) ** (1 / 3), 7.787 * xyz + 16 / 116)
        x, y, z = roots.unbind(1)
        return torch.stack((116 * y - 16, 500 * (x - y), 200 * (y - z)), 1)


@dataclass(frozen=True)
class YCbCr:
    """Luma and two color differences of ITU-R BT.601, from 16 to 235 and from 16 to 240; constants of CMC's release."""

    statistics: Statistics = Statistics((116.151, 121.080, 132.342), (109.5, 111.855, 111.964))
    """What the channels are shifted and divided by."""

    def convert(self, images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Red, green and blue from 0 to 1 as Y, Cb and Cr."""
        return _mix(images, _YCBCR) + _constant((16.0, 128.0, 128.0), images.dtype, images.device)[:, None, None]


@dataclass(frozen=True)
class YDbDr:
    """Luma and two color differences of SECAM, from 0 to 1 and from −1.333 to 1.333; InfoMin's space besides RGB (Tian
    et al., arXiv 2005.10243), with the constants of the PyContrast code."""

    statistics: Statistics = Statistics((0.457, -0.082, -0.052), (0.5, 1.331, 1.333))
    """What the channels are shifted and divided by."""

    def convert(self, images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Red, green and blue from 0 to 1 as Y, Db and Dr."""
        return _mix(images, _YDBDR)


@dataclass(frozen=True)
class YIQ:
    """Luma and two color differences of NTSC; statistics of Tiny ImageNet."""

    statistics: Statistics = Statistics((0.4512, 0.0328, -0.0103), (0.2608, 0.0947, 0.0439))
    """Mean and standard deviation of the channels."""

    def convert(self, images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Red, green and blue from 0 to 1 as Y, I and Q."""
        return _mix(images, _YIQ)


@dataclass(frozen=True)
class YUV:
    """Luma and two color differences of PAL; statistics of Tiny ImageNet."""

    statistics: Statistics = Statistics((0.4512, -0.0265, 0.0219), (0.2608, 0.0613, 0.0845))
    """Mean and standard deviation of the channels."""

    def convert(self, images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Red, green and blue from 0 to 1 as Y, U and V."""
        return _mix(images, _YUV)


@dataclass(frozen=True)
class XYZ:
    """CIE XYZ, from which `Lab` is computed; statistics of Tiny ImageNet."""

    statistics: Statistics = Statistics((0.2439, 0.2539, 0.2407), (0.2412, 0.2550, 0.2793))
    """Mean and standard deviation of the channels."""

    def convert(self, images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Red, green and blue from 0 to 1 as X, Y and Z."""
        return _mix(_linear(images), _XYZ)


@dataclass(frozen=True)
class HSV:
    """Hue in turns, saturation and value, each from 0 to 1; statistics of Tiny ImageNet. A hue near 0 and one near 1
    are alike, and the hue of a gray is 0."""

    statistics: Statistics = Statistics((0.2946, 0.3476, 0.5188), (0.2782, 0.2882, 0.2732))
    """Mean and standard deviation of the channels."""

    def convert(self, images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Red, green and blue from 0 to 1 as H, S and V."""
        value, (red, green, blue) = images.amax(1), images.unbind(1)
        spread = value - images.amin(1)
        has_hue = spread > 0
        divisor = torch.where(has_hue, spread, 1.0)
        sixth = torch.where(value == blue, 4 + (red - green) / divisor, 0.0)
        sixth = torch.where(value == green, 2 + (blue - red) / divisor, sixth)
        sixth = torch.where(value == red, (green - blue) / divisor, sixth)
        hue = torch.where(has_hue, (sixth / 6).remainder(1.0), 0.0)
        return torch.stack((hue, torch.where(has_hue, spread / value.clamp(min=1e-12), 0.0), value), 1)


@dataclass(frozen=True)
class InSpace:
    """The operation that converts images to a color space; the space's own `Normalize` usually follows."""

    space: ColorSpace
    """The color space."""

    def draw(self, count: int, generator: torch.Generator) -> Float[Tensor, "{count} 0"]:
        """Nothing is random here."""
        return torch.empty(count, 0)

    def apply(self, images: Float[Tensor, "b 3 h w"], parameters: Float[Tensor, "b 0"]) -> Float[Tensor, "b 3 h w"]:
        """The images in that space."""
        return self.space.convert(images)


@dataclass(frozen=True)
class Pick:
    """The operation that keeps some channels of each image."""

    channels: tuple[int, ...]
    """Which, of 0, 1 and 2, in this order."""

    def __post_init__(self) -> None:
        if not self.channels or not set(self.channels) <= {0, 1, 2}:
            raise UserError(f"Pick{self.channels} leaves no image: give some of the channels 0, 1 and 2")

    def draw(self, count: int, generator: torch.Generator) -> Float[Tensor, "{count} 0"]:
        """Nothing is random here."""
        return torch.empty(count, 0)

    def apply(self, images: Float[Tensor, "b 3 h w"], parameters: Float[Tensor, "b 0"]) -> Float[Tensor, "b c h w"]:
        """Those channels."""
        return pick(images, self.channels)


def pick(images: Float[Tensor, "b _ h w"], channels: tuple[int, ...]) -> Float[Tensor, "b c h w"]:
    """Some channels of each image. Slices, because a list of indices would have to be copied to the device first."""
    return torch.cat([images[:, number : number + 1] for number in channels], 1)


def _linear(images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
    """Linear light instead of sRGB's values."""
    return torch.where(images > 0.04045, ((images.clamp(min=0) + 0.055) / 1.055) ** 2.4, images / 12.92)


def _mix(images: Float[Tensor, "b 3 h w"], matrix: _Matrix) -> Float[Tensor, "b 3 h w"]:
    """Each pixel multiplied by a matrix, with a row for each output channel."""
    pixels = _constant(matrix, images.dtype, images.device) @ images.flatten(2)
    return pixels.unflatten(2, images.shape[2:])


@lru_cache(maxsize=64)
def _constant(numbers: tuple[Any, ...], dtype: torch.dtype, device: torch.device) -> Float[Tensor, "..."]:
    """Numbers on the device, cached there so that no step waits for a copy."""
    with torch.inference_mode(False):  # it is cached, so it must not be an inference tensor
        return torch.tensor(numbers, dtype=dtype, device=device)
