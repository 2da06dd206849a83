"""Geometric changes to an image by a level from 0 (none) to 1 (strongest), as in PIL. Pixels from outside the image
are filled with a color.

Bilinear and bicubic results equal PIL's up to rounding.

m: images, each with its own level   c: channels   h, w: height and width in pixels
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from vantage.errors import UserError
from vantage.views.operations.changes import Strength
from vantage.views.operations.cubic import sample_cubic
from vantage.views.operations.operation import put_back, select

__all__ = ["Rotate", "Shear", "Translate", "Warp", "warp_jointly"]

FILL = (124, 116, 104)
"""Red, green and blue, from 0 to 255, of pixels from outside the image: ImageNet's mean, as in InfoMin's code."""


class Warp(ABC):
    """A geometric change: each pixel of the result is taken from the position that a matrix maps it to."""

    fill: tuple[int, int, int]
    """Red, green and blue of pixels from outside the image, from 0 to 255."""

    @abstractmethod
    def matrix(self, strength: Strength, height: int, width: int) -> Float[Tensor, "m 2 3"]:
        """For each image, the matrix from a pixel of the result, (across, down, 1), to its position in the image; both
        in pixels from the upper left corner."""

    def __call__(self, images: Float[Tensor, "m c h w"], strength: Strength) -> Float[Tensor, "m c h w"]:
        """The changed images."""
        return _warp(images, self.matrix(strength, *images.shape[-2:]), strength, self.fill)


def warp_jointly(
    warps: Sequence[Warp], which: Int[Tensor, "m"], images: Float[Tensor, "m c h w"], strength: Strength
) -> Float[Tensor, "m c h w"]:
    """Each image changed by the warp whose number is in `which`, all in one call. The warps must share one fill."""
    matrix = torch.empty(len(which), 2, 3)
    for number in which.unique().tolist():
        rows = (which == number).nonzero()[:, 0]
        matrix[rows] = warps[number].matrix(strength.rows(rows), *images.shape[-2:])
    return _warp(images, matrix, strength, warps[0].fill)


@dataclass(frozen=True)
class Rotate(Warp):
    """Rotated about the center."""

    degrees: float = 30.0
    """Angle at level 1, counterclockwise or clockwise."""

    fill: tuple[int, int, int] = FILL
    """Red, green and blue of pixels from outside the image, from 0 to 255."""

    def matrix(self, strength: Strength, height: int, width: int) -> Float[Tensor, "m 2 3"]:
        """A rotation."""
        angle = strength.level * strength.sign * math.radians(self.degrees)
        cosine, sine = angle.cos(), angle.sin()
        across = width / 2 - cosine * width / 2 + sine * height / 2
        down = height / 2 - sine * width / 2 - cosine * height / 2
        return torch.stack((cosine, -sine, across, sine, cosine, down), 1).view(-1, 2, 3)


@dataclass(frozen=True)
class Shear(Warp):
    """Rows (or columns) shifted in proportion to their distance from the upper left corner."""

    axis: int
    """0: rows shift along the width; 1: columns shift along the height."""

    most: float = 0.3
    """Pixels of shift for each pixel of distance, at level 1."""

    fill: tuple[int, int, int] = FILL
    """Red, green and blue of pixels from outside the image, from 0 to 255."""

    def __post_init__(self) -> None:
        _check_axis(self, self.axis)

    def matrix(self, strength: Strength, height: int, width: int) -> Float[Tensor, "m 2 3"]:
        """A shear."""
        rows = _identity(strength)
        rows[:, self.axis, 1 - self.axis] = strength.level * strength.sign * self.most
        return rows


@dataclass(frozen=True)
class Translate(Warp):
    """Shifted along the width or the height."""

    axis: int
    """0: along the width; 1: along the height."""

    most: float = 0.45
    """Shift at level 1, as a share of that side."""

    fill: tuple[int, int, int] = FILL
    """Red, green and blue of pixels from outside the image, from 0 to 255."""

    def __post_init__(self) -> None:
        _check_axis(self, self.axis)

    def matrix(self, strength: Strength, height: int, width: int) -> Float[Tensor, "m 2 3"]:
        """A shift."""
        rows = _identity(strength)
        rows[:, self.axis, 2] = strength.level * strength.sign * self.most * (width, height)[self.axis]
        return rows


def _check_axis(part: object, axis: int) -> None:
    if axis not in (0, 1):
        raise UserError(f"{type(part).__name__}.axis is {axis}: give 0 (along the width) or 1 (along the height)")


def _identity(strength: Strength) -> Float[Tensor, "m 2 3"]:
    return torch.eye(2, 3).repeat(len(strength.level), 1, 1)


def _warp(
    images: Float[Tensor, "m c h w"], rows: Float[Tensor, "m 2 3"], strength: Strength, fill: tuple[int, int, int]
) -> Float[Tensor, "m c h w"]:
    """The images at the positions of the matrices `rows` (`Warp.matrix`). Positions outside are filled; near the edge,
    the edge is repeated."""
    across, down = (rows != torch.eye(2, 3)).any(2).any(0).tolist()
    sample_moved = partial(sample_cubic, across=across, down=down)
    positions, result = _positions(rows.to(images, non_blocking=True), *images.shape[-2:]), images
    for cubic, sample in ((False, _sample_linear), (True, sample_moved)):
        which = (strength.cubic == cubic).nonzero()[:, 0].to(images.device, non_blocking=True)
        if len(which):
            result = put_back(result, which, sample(select(images, which), select(positions, which)))
    height, width = images.shape[-2:]
    x, y = positions.unbind(-1)
    outside = (x < 0) | (x >= width) | (y < 0) | (y >= height)
    for channel, shade in zip(result.unbind(1), fill, strict=False):
        channel.masked_fill_(outside, shade / 255)
    return result.clamp_(0, 1)


def _positions(rows: Float[Tensor, "m 2 3"], height: int, width: int) -> Float[Tensor, "m {height} {width} 2"]:
    """Where each pixel of the result is in its image: across and down, each a plane in memory."""
    planes = rows.new_empty(2, len(rows), height, width)
    down, across = (torch.arange(side, device=rows.device, dtype=rows.dtype) + 0.5 for side in (height, width))
    for plane, row in zip(planes, rows.unbind(1), strict=True):
        rest = row[:, 1:2] * down + row[:, 2:3]
        torch.add((row[:, 0:1] * across)[:, None], rest[..., None], out=plane)
    return planes.permute(1, 2, 3, 0)


def _sample_linear(images: Float[Tensor, "m c h w"], positions: Float[Tensor, "m h w 2"]) -> Float[Tensor, "m c h w"]:
    grid = torch.empty_like(positions)  # planes as well: torch samples them without interleaving
    for plane, part, side in zip(grid.unbind(-1), positions.unbind(-1), images.shape[:1:-1], strict=True):
        torch.mul(part, 2 / side, out=plane).sub_(1)
    return functional.grid_sample(images, grid, "bilinear", "border", align_corners=False)
