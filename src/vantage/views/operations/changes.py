"""Changes to an image by a level from 0 (none) to 1 (strongest): what RandAugment draws from.

They follow PIL as called by timm's RandAugment, which InfoMin's code used, but on whole batches of floats. Where PIL
works in gray levels of 255 (posterize, solarize, equalize, autocontrast), pixels are rounded to them.

m: images, each with its own level   r: some of them   c: channels   h, w: height and width in pixels
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vantage.views.operations.color import gray

__all__ = [
    "AutoContrast",
    "Brightness",
    "Change",
    "Contrast",
    "Equalize",
    "Identity",
    "Invert",
    "Posterize",
    "Saturation",
    "Sharpness",
    "Solarize",
    "SolarizeAdd",
    "Strength",
]


class Strength(NamedTuple):
    """How each image is changed."""

    level: Float[Tensor, "m"]
    """From 0 to 1."""
    sign: Float[Tensor, "m"]
    """1 or −1: the direction of geometric changes."""
    cubic: Bool[Tensor, "m"]
    """Whether geometric changes interpolate bicubically instead of bilinearly."""

    def across(self, images: Float[Tensor, "m c h w"]) -> Float[Tensor, "m 1 1 1"]:
        """The level, in a shape that broadcasts over images."""
        return self.level.to(images, non_blocking=True)[:, None, None, None]

    def rows(self, which: Int[Tensor, "r"]) -> "Strength":
        """The strengths of some images."""
        return Strength(*(field[which] for field in self))


@runtime_checkable
class Change(Protocol):
    """A frozen change of images in [0, 1]."""

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """The changed images."""
        ...


@dataclass(frozen=True)
class Identity:
    """No change."""

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """The images."""
        return images


@dataclass(frozen=True)
class AutoContrast:
    """Each channel stretched to fill [0, 1], whatever the level."""

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """The stretched images."""
        from torchvision.transforms.v2.functional import autocontrast

        return autocontrast(_levels(images).byte()).to(images) / 255


@dataclass(frozen=True)
class Equalize:
    """Each channel with a histogram as even as its gray levels allow, whatever the level."""

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """The equalized images."""
        from torchvision.transforms.v2.functional import equalize

        return equalize(_levels(images).byte()).to(images) / 255


@dataclass(frozen=True)
class Invert:
    """The negative, whatever the level."""

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """1 − x."""
        return 1 - images


@dataclass(frozen=True)
class Posterize:
    """Only the highest ⌊bits · level⌋ of eight bits: fewer at a lower level, as in InfoMin's code."""

    bits: int = 4
    """Bits kept at level 1."""

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """The images in fewer shades."""
        bits = (self.bits * strength.level.double() + 1e-9).floor()
        step = (2.0 ** (8 - bits)).to(images, non_blocking=True)[:, None, None, None]
        return _levels(images).div(step).floor() * step / 255


@dataclass(frozen=True)
class Solarize:
    """The negative of pixels of at least ⌊256 · level⌋: of none at level 1."""

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """The images, their bright parts inverted."""
        threshold = (256 * strength.across(images) + 1e-4).floor()
        shades = _levels(images)
        return torch.where(shades < threshold, shades, 255 - shades) / 255


@dataclass(frozen=True)
class SolarizeAdd:
    """⌊add · level⌋ added to pixels below 128."""

    add: float = 110.0
    """Shades of 255 added at level 1; never more than 128."""

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """The images, their dark parts brighter."""
        shift = (self.add * strength.across(images) + 1e-4).floor().clamp(max=128)
        shades = _levels(images)
        return torch.where(shades < 128, (shades + shift).clamp(max=255), shades) / 255


class _Blend:
    """A blend of the image with a degraded one, by a factor from .1 at level 0 to 1.9 at level 1, clipped to [0, 1]."""

    def blend(
        self, images: Float[Tensor, "m c h w"], degenerate: Float[Tensor, "m _ _ _"], strength: Strength
    ) -> Float[Tensor, "m c h w"]:
        """degraded + factor · (image − degraded)."""
        return torch.lerp(degenerate.expand_as(images), images, 0.1 + 1.8 * strength.across(images)).clamp(0, 1)


@dataclass(frozen=True)
class Saturation(_Blend):
    """More or less color: 1.9 times as much at level 1, nearly gray at 0 (`Color` of RandAugment)."""

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """The images, blended with their grayscale."""
        return self.blend(images, gray(images), strength)


@dataclass(frozen=True)
class Contrast(_Blend):
    """More or less contrast, around the mean gray of the image."""

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """The images, blended with one uniform gray."""
        uniform = (gray(images).mean((1, 2, 3), keepdim=True) * 255 + 0.5).floor() / 255
        return self.blend(images, uniform, strength)


@dataclass(frozen=True)
class Brightness(_Blend):
    """Brighter or darker."""

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """The images, blended with black."""
        return self.blend(images, images.new_zeros(len(images), 1, 1, 1), strength)


@dataclass(frozen=True)
class Sharpness(_Blend):
    """Sharper or softer; the outermost pixels are unchanged."""

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """The images, blended with their mean over 3 × 3 pixels, the middle one with five times the weight."""
        if min(images.shape[-2:]) <= 2:
            return images
        soft = images.clone()
        high = images[..., :-2, :] + images[..., 1:-1, :] + images[..., 2:, :]
        square = high[..., :-2] + high[..., 1:-1] + high[..., 2:]
        soft[..., 1:-1, 1:-1] = square.add_(images[..., 1:-1, 1:-1], alpha=4).mul_(1 / 13)
        return self.blend(images, soft, strength)


def _levels(images: Float[Tensor, "m c h w"]) -> Float[Tensor, "m c h w"]:
    """Pixels as whole shades from 0 to 255."""
    return (images * 255).round().clamp(0, 255)
