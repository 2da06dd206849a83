"""Color jitter, grayscale and normalization of whole batches, with parameters per image.

b: images   m: images in a part of the batch   h, w: height and width in pixels
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from vantage.errors import UserError
from vantage.views.operations.operation import check_probability, coin, indices, put_back, select, uniform

LUMA = (0.2989, 0.587, 0.114)
"""Shares of red, green and blue in the gray value, as torchvision has them (ITU-R BT.601)."""

BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)
"""How `JitterDraw.order` numbers the four changes."""


class JitterDraw(NamedTuple):
    """Parameters of color jitter."""

    on: Bool[Tensor, "b"]
    """Whether the image is changed at all."""
    factor: Float[Tensor, "b 3"]
    """Factors of brightness, contrast and saturation; 1 changes nothing."""
    turn: Float[Tensor, "b"]
    """Rotation of the hue, in turns."""
    order: Int64[Tensor, "b 4"]
    """The four changes (0 brightness, 1 contrast, 2 saturation, 3 hue) in the order in which they are applied."""


@dataclass(frozen=True)
class ColorJitter:
    """Brightness, contrast, saturation and hue changed at random, the four in a random order per image, as in
    torchvision.

    The order matters because the result of every change is clipped to [0, 1]. The hue is rotated exactly, in HSV.
    """

    any_size: ClassVar[bool] = True  # up to clipping, and to rotations of the hue, which are not linear

    brightness: float
    """Factor from 1 - brightness (at least 0) to 1 + brightness."""
    contrast: float
    """Factor from 1 - contrast (at least 0) to 1 + contrast."""
    saturation: float
    """Factor from 1 - saturation (at least 0) to 1 + saturation."""
    hue: float
    """Rotation from -hue to +hue, in turns; 0.5 reaches every hue."""
    probability: float = 1.0
    """Share of the images that are changed."""

    def __post_init__(self) -> None:
        check_probability("color jitter's probability", self.probability)
        for name in ("brightness", "contrast", "saturation"):
            if not getattr(self, name) >= 0:
                raise UserError(f"color jitter's {name} must be at least 0, found {getattr(self, name)}")
        if not 0 <= self.hue <= 0.5:
            raise UserError(f"color jitter's hue must be from 0 to 0.5 turns, found {self.hue}")

    def draw(self, count: int, generator: torch.Generator) -> JitterDraw:
        """Parameters of `count` images, drawn for the unchanged ones too."""
        on = coin(count, self.probability, generator)
        widths = (self.brightness, self.contrast, self.saturation)
        factor = [uniform(count, (max(0.0, 1 - width), 1 + width), generator) for width in widths]
        turn = uniform(count, (-self.hue, self.hue), generator)
        order = torch.rand(count, 4, generator=generator).argsort(1)
        return JitterDraw(on, torch.stack(factor, 1), turn, order)

    def apply(self, images: Float[Tensor, "b 3 h w"], parameters: JitterDraw) -> Float[Tensor, "b 3 h w"]:
        """The images in [0, 1], changed as `parameters` say."""
        # Sorted by when the hue is rotated, so each rotation is one slice; the other three changes are steps for all.
        when = numpy.where(parameters.on.numpy(), (parameters.order.numpy() == HUE).argmax(1), 4)
        ends = numpy.bincount(when, minlength=5).cumsum()[:4].tolist()
        which = torch.from_numpy(when.argsort(kind="stable")[: ends[3]])
        if len(which) == 0:
            return images
        matrix, shift = _color_steps(parameters, which)
        where, turn = (part.to(images.device, non_blocking=True) for part in (which, parameters.turn[which]))
        part, start = select(images, where), 0
        if self.hue > 0 and images.device.type != "cpu":
            return put_back(images, where, _all_at_once(part, matrix, shift, turn, torch.from_numpy(when)[which]))
        matrix, shift = (steps.to(images.device, non_blocking=True) for steps in (matrix, shift))
        for step, stop in enumerate(ends):
            if self.hue > 0 and stop > start:
                result = turn_hue(part[start:stop], turn[start:stop])
                if len(result) == len(part):
                    part = result
                else:  # several images, so `part` is a copy that may be written to
                    part[start:stop] = result
            start = stop
            if step < 3:
                part = _mix(part, matrix[step], shift[step])
        return put_back(images, where, part)


@dataclass(frozen=True)
class Grayscale:
    """Some images without color: their gray value in all three channels."""

    any_size: ClassVar[bool] = True

    probability: float = 0.2
    """Share of the images that lose their color."""

    def __post_init__(self) -> None:
        check_probability("grayscale's probability", self.probability)

    def draw(self, count: int, generator: torch.Generator) -> Bool[Tensor, "{count}"]:
        """Which of `count` images lose their color."""
        return coin(count, self.probability, generator)

    def apply(self, images: Float[Tensor, "b 3 h w"], parameters: Bool[Tensor, "b"]) -> Float[Tensor, "b 3 h w"]:
        """The images, gray where `parameters` is true."""
        which = indices(parameters, images.device)
        return put_back(images, which, gray(select(images, which)).repeat(1, 3, 1, 1)) if len(which) else images


@dataclass(frozen=True)
class Normalize:
    """The mean of each channel subtracted, then divided by its standard deviation."""

    any_size: ClassVar[bool] = True

    mean: tuple[float, float, float]
    """Means of red, green and blue, where pixels are from 0 to 1."""
    std: tuple[float, float, float]
    """Standard deviations of red, green and blue, where pixels are from 0 to 1."""

    def __post_init__(self) -> None:
        if min(self.std) <= 0:
            raise UserError(f"standard deviations must be above 0, found {self.std}")

    def draw(self, count: int, generator: torch.Generator) -> Float[Tensor, "{count} 0"]:
        """Nothing is random here."""
        return torch.empty(count, 0)

    def apply(self, images: Float[Tensor, "b 3 h w"], parameters: Float[Tensor, "b 0"]) -> Float[Tensor, "b 3 h w"]:
        """The images, normalized."""
        factor, shift = _affine(self.mean, self.std, images.device)
        return images.mul(factor).add_(shift)  # one call for both is twice as slow


def gray(images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 1 h w"]:
    """Gray values."""
    red, green, blue = LUMA
    value = images[:, 0:1] * red
    return value.add_(images[:, 1:2], alpha=green).add_(images[:, 2:3], alpha=blue)


def turn_hue(images: Float[Tensor, "b 3 h w"], turn: Float[Tensor, "b"]) -> Float[Tensor, "b 3 h w"]:
    """Images in [0, 1] with their hue rotated exactly, and value and saturation unchanged.

    In units of a sixth of a turn, let H from -3 to 3 be the hue (0 red, 2 green, -2 blue), V and v the largest and the
    least of the channels, C = V - v, and u = red - v. Then |H| C = 3 C - w with w = 2 u + | u - |green - blue| |, and H
    has the sign of green - blue, so that up to whole turns H = 3 - (w / C with that sign). Back, red = V - C cut(|H| -
    1), green = V - C cut(2 - |H + 1|), blue = V - C cut(2 - |H - 1|), where cut clips to [0, 1]. So no pixel needs a
    case distinction, whose masks and remainders make HSV slow on a CPU.
    """
    red, green, blue = images.unbind(1)
    value = torch.maximum(torch.maximum(red, green), blue)
    least = torch.minimum(torch.minimum(red, green), blue)
    six = (value - least).mul_(6)
    side, excess = green - blue, red - least
    hue = (excess - side.abs()).abs_().add_(excess, alpha=2).copysign_(side).div_(six.clamp_min(1e-12))
    hue = torch.sub(turn.view(-1, 1, 1) + 0.5, hue, out=hue)
    hue.sub_(hue.round())  # from here on in turns, from -1/2 to 1/2
    out, low = torch.empty_like(images), torch.add(value, six, alpha=-1 / 3)
    torch.addcmul(value.add_(six, alpha=1 / 6), six, hue.abs().clamp_(1 / 6, 1 / 3), value=-1, out=out[:, 0])
    torch.addcmul(low, six, hue.add(1 / 6).abs_().clamp_(1 / 6, 1 / 3), out=out[:, 1])
    torch.addcmul(low, six, hue.sub_(1 / 6).abs_().clamp_(1 / 6, 1 / 3), out=out[:, 2])
    return out


def _all_at_once(
    images: Float[Tensor, "m 3 h w"],
    matrix: Float[Tensor, "3 m 3 3"],
    shift: Float[Tensor, "3 m 1 3"],
    turn: Float[Tensor, "m"],
    when: Int64[Tensor, "m"],
) -> Float[Tensor, "m 3 h w"]:
    """The three steps of color, with the hue rotated after the first `when` of them, in one rotation for all images:
    the steps before it leave an image alone whose turn comes earlier, and those after it one whose turn comes later.
    On a GPU a few more products cost less than starting four rotations."""
    first = (torch.arange(3)[:, None] < when)[..., None, None]
    nothing = torch.eye(3).expand_as(matrix), torch.zeros(()).expand_as(shift)
    for mask in (first, ~first):
        steps = (torch.where(mask, step, same) for step, same in zip((matrix, shift), nothing, strict=True))
        matrices, shifts = (part.to(images.device, non_blocking=True) for part in steps)
        for number in range(3):
            images = _mix(images, matrices[number], shifts[number])
        if mask is first:
            images = turn_hue(images, turn)
    return images


def _color_steps(
    parameters: JitterDraw, which: Int64[Tensor, "m"]
) -> tuple[Float[Tensor, "3 m 3 3"], Float[Tensor, "3 m 1 3"]]:
    """Brightness, contrast and saturation of the images `which`, as three steps: a matrix, and the weights of the
    mean color.

    All three are f x + (1 - f) y with y black, the mean gray, or the pixel's own gray.
    """
    rows = which.numpy()  # NumPy is faster than torch on such small tables
    order, factor = parameters.order.numpy()[rows], parameters.factor.numpy()[rows]
    change = order[order != HUE].reshape(-1, 3)
    scale = numpy.take_along_axis(factor, change, 1).T
    luma = numpy.array(LUMA, numpy.float32)
    gray_part = ((1 - scale) * (change == SATURATION).T)[..., None, None] * luma
    matrix = gray_part + scale[..., None, None] * numpy.eye(3, dtype=numpy.float32)
    shift = ((1 - scale) * (change == CONTRAST).T)[..., None, None] * luma
    return torch.from_numpy(matrix), torch.from_numpy(shift)


def _mix(
    images: Float[Tensor, "m 3 h w"], matrix: Float[Tensor, "m 3 3"], shift: Float[Tensor, "m 1 3"]
) -> Float[Tensor, "m 3 h w"]:
    """matrix @ pixel + shift @ mean color of the image, clipped to [0, 1]."""
    pixels = images.flatten(2)
    offset = torch.matmul(shift, pixels.mean(2, keepdim=True))
    return torch.baddbmm(offset, matrix, pixels).clamp_(0, 1).view_as(images)


@lru_cache(maxsize=64)
def _affine(
    mean: tuple[float, ...], std: tuple[float, ...], device: torch.device
) -> tuple[Float[Tensor, "3 1 1"], Float[Tensor, "3 1 1"]]:
    """Normalization as a factor and a shift, cached on the device so that no step waits for a copy."""
    deviation = torch.tensor(std, dtype=torch.float64)
    shift = -torch.tensor(mean, dtype=torch.float64) / deviation
    return (1 / deviation).float().to(device).view(3, 1, 1), shift.float().to(device).view(3, 1, 1)
