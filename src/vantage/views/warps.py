"""Geometric changes of an image by a level from 0 (none) to 1 (strongest), as in PIL: what leaves the image is filled.

m: images, each with its own level   c: channels   h, w: height and width in pixels
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from vantage.errors import UserError
from vantage.views.changes import Strength

__all__ = ["Rotate", "Shear", "Translate"]

FILL = (124, 116, 104)
"""Shades of 255 that fill what comes from outside: ImageNet's mean, as InfoMin's code has it."""


@dataclass(frozen=True)
class Rotate:
    """Turned about the middle."""

    degrees: float = 30.0
    """Angle at level 1, against the clock or with it."""

    fill: tuple[int, int, int] = FILL
    """Red, green and blue of what comes from outside, from 0 to 255."""

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """The turned images."""
        height, width = images.shape[-2:]
        angle = strength.level * strength.sign * math.radians(self.degrees)
        cosine, sine = angle.cos(), angle.sin()
        across = width / 2 - cosine * width / 2 + sine * height / 2
        down = height / 2 - sine * width / 2 - cosine * height / 2
        rows = torch.stack((cosine, -sine, across, sine, cosine, down), 1).view(-1, 2, 3)
        return _warped(images, rows, strength, self.fill)


@dataclass(frozen=True)
class Shear:
    """Rows (or columns) moved in proportion to their distance from the upper left corner."""

    axis: int
    """0: rows move, along the width; 1: columns move, along the height."""

    most: float = 0.3
    """Pixels moved for each pixel of distance, at level 1."""

    fill: tuple[int, int, int] = FILL
    """Red, green and blue of what comes from outside, from 0 to 255."""

    def __post_init__(self) -> None:
        _check_axis(self, self.axis)

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """The sheared images."""
        rows = _identity(strength)
        rows[:, self.axis, 1 - self.axis] = strength.level * strength.sign * self.most
        return _warped(images, rows, strength, self.fill)


@dataclass(frozen=True)
class Translate:
    """Moved along the width or the height."""

    axis: int
    """0: along the width; 1: along the height."""

    most: float = 0.45
    """Share of that side at level 1."""

    fill: tuple[int, int, int] = FILL
    """Red, green and blue of what comes from outside, from 0 to 255."""

    def __post_init__(self) -> None:
        _check_axis(self, self.axis)

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """The moved images."""
        rows = _identity(strength)
        rows[:, self.axis, 2] = strength.level * strength.sign * self.most * images.shape[3 - self.axis]
        return _warped(images, rows, strength, self.fill)


def _check_axis(part: object, axis: int) -> None:
    if axis not in (0, 1):
        raise UserError(f"{type(part).__name__}.axis is {axis}: give 0 (along the width) or 1 (along the height)")


def _identity(strength: Strength) -> Float[Tensor, "m 2 3"]:
    return torch.eye(2, 3).repeat(len(strength.level), 1, 1)


def _warped(
    images: Float[Tensor, "m c h w"], rows: Float[Tensor, "m 2 3"], strength: Strength, fill: tuple[int, int, int]
) -> Float[Tensor, "m c h w"]:
    """Each pixel of the result taken from the place that its matrix `rows` tells, in pixels from the upper left
    corner of the image; a place outside is filled, one near the edge sees the edge repeated."""
    height, width = images.shape[-2:]
    rows = rows.to(images, non_blocking=True)
    down, across = (torch.arange(side, device=images.device, dtype=images.dtype) + 0.5 for side in (height, width))
    place = torch.stack((*torch.meshgrid(across, down, indexing="xy"), torch.ones_like(images[0, 0])), -1)
    source = (place.view(-1, 3) @ rows.mT).view(-1, height, width, 2)
    sides = images.new_tensor((width, height))
    outside = ((source < 0) | (source >= sides)).any(-1)
    grid = 2 * source / sides - 1
    made = torch.empty_like(images)
    for cubic, mode in ((False, "bilinear"), (True, "bicubic")):
        which = (strength.cubic == cubic).nonzero()[:, 0].to(images.device)
        if len(which):
            taken = functional.grid_sample(images[which], grid[which], mode, "border", align_corners=False)
            made[which] = taken.clamp(0, 1)
    colour = images.new_tensor(fill)[: images.shape[1], None, None] / 255
    return torch.where(outside[:, None], colour, made)
