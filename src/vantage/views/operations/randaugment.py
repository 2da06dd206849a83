"""RandAugment: a few changes of an image, drawn at random, at one common strength.

b: images   m: some of them   n: changes of an image
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from vantage.errors import UserError
from vantage.views.operations.changes import (
    AutoContrast,
    Brightness,
    Change,
    Contrast,
    Equalize,
    Identity,
    Invert,
    Posterize,
    Saturation,
    Sharpness,
    Solarize,
    SolarizeAdd,
    Strength,
)
from vantage.views.operations.operation import check_probability, coin, select
from vantage.views.operations.warps import Rotate, Shear, Translate, Warp, warp_jointly

__all__ = ["CHANGES", "SHAPE_CHANGES", "RandAugment", "RandDraw"]

SHAPE_CHANGES: tuple[Change, ...] = (Identity(), Rotate(), Shear(0), Shear(1), Translate(0), Translate(1))
"""Changes that leave colors alone, for views that are channels of a color space (CMC)."""

CHANGES: tuple[Change, ...] = (
    AutoContrast(),
    Equalize(),
    Invert(),
    Rotate(),
    Posterize(),
    Solarize(),
    SolarizeAdd(),
    Saturation(),
    Contrast(),
    Brightness(),
    Sharpness(),
    Shear(0),
    Shear(1),
    Translate(0),
    Translate(1),
)
"""The list of timm's RandAugment, which InfoMin's code used."""


class RandDraw(NamedTuple):
    """Parameters of RandAugment; a column for each change."""

    change: Int64[Tensor, "b n"]
    """Which change of the list."""
    on: Bool[Tensor, "b n"]
    """Whether it is applied."""
    level: Float[Tensor, "b n"]
    """How strongly, from 0 to 1."""
    sign: Float[Tensor, "b n"]
    """1 or −1: the direction of geometric changes."""
    cubic: Bool[Tensor, "b n"]
    """Whether geometric changes interpolate bicubically instead of bilinearly."""


@dataclass(frozen=True)
class RandAugment:
    """Changes drawn from a list with replacement, each applied with a probability, at levels around a mean
    (Cubuk et al., arXiv 1909.13719; n = 2, m = 10 and mstd = .5 are those of InfoMin's released code).

    A level of 10 is the strongest. Drawn levels are clipped to [0, 10], so with a mean of 10 and a spread of .5 half of
    them are exactly 10.
    """

    changes: tuple[Change, ...] = CHANGES
    """The changes to draw from, all equally likely."""
    count: int = 2
    """n: changes made to an image, one after the other."""
    magnitude: float = 10.0
    """m: mean level, at most 10."""
    spread: float = 0.5
    """mstd: standard deviation of the level."""
    probability: float = 0.5
    """Probability that a drawn change is applied."""

    def __post_init__(self) -> None:
        check_probability("RandAugment's probability", self.probability)
        if not self.changes or self.count < 1:
            raise UserError(f"RandAugment has {len(self.changes)} changes and makes {self.count}: give at least one")
        if not (0 <= self.magnitude <= 10 and self.spread >= 0):
            raise UserError(
                f"RandAugment's magnitude is {self.magnitude} with spread {self.spread}: give 0 to 10, and at least 0"
            )

    def draw(self, count: int, generator: torch.Generator) -> RandDraw:
        """Parameters of `count` images."""
        shape = (count, self.count)
        change = torch.randint(len(self.changes), shape, generator=generator)
        on = torch.rand(shape, generator=generator) < self.probability
        level = (self.magnitude + self.spread * torch.randn(shape, generator=generator)).clamp(0, 10) / 10
        sign = coin(count * self.count, 0.5, generator).view(shape) * 2.0 - 1
        cubic = coin(count * self.count, 0.5, generator).view(shape)
        return RandDraw(change, on, level, sign, cubic)

    def apply(self, images: Float[Tensor, "b c h w"], parameters: RandDraw) -> Float[Tensor, "b c h w"]:
        """The images in [0, 1], changed as `parameters` say."""
        images, groups = images.clone() if len(images) > 1 else images, self._groups()
        for column in range(parameters.change.shape[1]):
            changes = torch.where(parameters.on[:, column], parameters.change[:, column], -1)
            strength, present = Strength(*(field[:, column] for field in parameters[2:])), set(changes.tolist())
            for numbers in groups:
                if not present.intersection(numbers):
                    continue
                rows = torch.isin(changes, torch.tensor(numbers)).nonzero()[:, 0]
                where = rows.to(images.device, non_blocking=True)
                part = self._change(numbers, changes[rows], select(images, where), strength.rows(rows))
                images = images.index_copy_(0, where, part) if len(images) > 1 else part
        return images

    def _groups(self) -> list[list[int]]:
        """Numbers of the changes made in one call: all warps with one fill, any other change alone."""
        groups: dict[Any, list[int]] = {}
        for number, change in enumerate(self.changes):
            groups.setdefault(change.fill if isinstance(change, Warp) else number, []).append(number)
        return list(groups.values())

    def _change(
        self, numbers: list[int], change: Int64[Tensor, "m"], images: Float[Tensor, "m c h w"], strength: Strength
    ) -> Float[Tensor, "m c h w"]:
        """Images changed by one group: each by the change whose number is in `change`."""
        if len(numbers) == 1:
            return self.changes[numbers[0]](images, strength)
        warps = [warp for number in numbers if isinstance(warp := self.changes[number], Warp)]
        return warp_jointly(warps, torch.searchsorted(torch.tensor(numbers), change), images, strength)
