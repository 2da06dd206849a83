"""Colorful Moving MNIST: clips of a digit that moves over a photograph, and second views that share some factors.

InfoMin (Tian et al., arXiv 2005.10243, section 4.1, appendix B.4) describes the set, but it was never published. Here,
all random numbers of a clip are a function of (seed, epoch, index of its digit).

b: clips   t: frames   s: side of the canvas in pixels   d: side of a digit   n, w: images of a set, and their side
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from vantage import draws
from vantage.errors import UserError
from vantage.studies.moving_mnist.factors import Factors, SameDigit, SameImage, combine_factors, number_below
from vantage.studies.moving_mnist.image_set import ImageSet
from vantage.studies.moving_mnist.motion import digit_positions
from vantage.studies.moving_mnist.shared_factors import SharedFactors

__all__ = ["Clips", "Pairs", "Scene", "compose_frames", "normalize_pixels"]

_NUMBERS = 13  # random numbers per clip and second view


@dataclass(frozen=True)
class Scene:
    """How clips are made. Choices that the paper leaves open are marked "our choice"."""

    canvas: int = 64
    """Width and height of a frame, in pixels."""

    speed: float = 6.4
    """Pixels that the digit moves per frame: a tenth of the canvas."""

    seen: int = 10
    """Number of frames in the first view, counted from the start of the clip."""

    last: int = 20
    """Frame, counted from 1, from which the second view takes the shared factors."""

    same_digit: SameDigit = SameImage()
    """What it means to share a digit: the same image (our choice), or another image of its class."""

    def __post_init__(self) -> None:
        if not 1 <= self.seen <= self.last or self.speed < 0 or self.canvas < 1:
            raise UserError(
                f"{self} cannot be made: show 1 frame or more, but none later than the last frame; take a speed of 0 or"
                " more, and a canvas of 1 pixel or more"
            )


@dataclass(frozen=True)
class Pairs:
    """First and second views, with their factors."""

    first: UInt8[Tensor, "b t 3 s s"]
    """The visible frames: one digit, moving over one background."""

    second: UInt8[Tensor, "b 3 s s"]
    """One image."""

    clip: Factors
    """The factors of the clip's last frame (`Scene.last`), some of which the second view shares."""

    other: Factors
    """The factors of the second view."""


class Clips:
    """One clip for each digit in an image set, drawn anew in every epoch."""

    def __init__(self, digits: ImageSet, backgrounds: ImageSet, scene: Scene = Scene(), seed: int = 0) -> None:  # noqa: B008
        """Frames are made on the device of the two image sets. Raises `UserError` if these do not fit the canvas."""
        digit, room = digits.pixels.shape[-1], backgrounds.pixels.shape[-1] - scene.canvas
        if digits.pixels.shape[1] != 1 or backgrounds.pixels.shape[1] != 3:
            raise UserError(
                "digits have one channel and backgrounds three: load them by load_digits and load_backgrounds"
            )
        if digit > scene.canvas or room < 0:
            raise UserError(
                f"a canvas of {scene.canvas} pixels cannot hold digits of {digit}, or be cropped from backgrounds of"
                f" {backgrounds.pixels.shape[-1]}: choose another canvas, or other sides"
            )
        self.digits, self.backgrounds, self.scene, self.seed = digits, backgrounds, scene, seed
        self.room = scene.canvas - digit
        """Range of the digit's corner on each axis: 0 to this many pixels."""
        self._label = digits.label.cpu()

    def __len__(self) -> int:
        return len(self.digits)

    @property
    def frames_of_a_pair(self) -> int:
        """Frames of the first view, plus the second view."""
        return self.scene.seen + 1

    def factors(
        self, epoch: int, number: Int[Tensor, "b"], shared: SharedFactors
    ) -> tuple[Float[Tensor, "b t 2"], Factors, Factors]:
        """The digit's position in every frame up to the last, the factors of that frame, and those of the second view.

        Starts are uniform over the positions where the digit fits, and directions over the circle. Backgrounds, crops,
        and all that the second view does not share are uniform and independent. Computed on the CPU, in float64.
        """
        seeds = draws.query_seeds(draws.mix(self.seed, draws.Purpose.CLIPS), epoch, number.cpu())
        # One column for each random number, so that sharing a factor does not change how the others are drawn.
        u = draws.uniforms(seeds, _NUMBERS)
        path = digit_positions(
            u[:, 0:2] * self.room, u[:, 2] * 2 * torch.pi, self.scene.last, self.scene.speed, float(self.room)
        )
        clip = Factors(number.cpu(), *self._background(u[:, 3:6]), path[:, -1])
        new = number_below(u[:, 6], len(self.digits))
        other = Factors(new, *self._background(u[:, 7:10]), u[:, 10:12] * self.room)
        same = self.scene.same_digit(clip.digit, self._label, u[:, 12])
        factors = Factors(same, clip.background, clip.crop, clip.place)
        return path, clip, combine_factors(factors, other, shared)

    def pairs(self, epoch: int, number: Int[Tensor, "b"], shared: SharedFactors) -> Pairs:
        """The clips of some digits, with second views that share the factors in `shared`."""
        path, clip, other = self.factors(epoch, number, shared)
        first = self._frames(clip, path[:, : self.scene.seen])
        return Pairs(first, self._frames(other, other.place[:, None])[:, 0], clip, other)

    def frames(self, epoch: int, number: Int[Tensor, "b"]) -> tuple[UInt8[Tensor, "b 3 s s"], Factors]:
        """The last frame of each clip alone, for the tasks, and its factors."""
        _, clip, _ = self.factors(epoch, number, SharedFactors(digit=True))
        return self._frames(clip, clip.place[:, None])[:, 0], clip

    def _background(self, u: Float[Tensor, "b 3"]) -> tuple[Int[Tensor, "b"], Int[Tensor, "b 2"]]:
        room = self.backgrounds.pixels.shape[-1] - self.scene.canvas
        return number_below(u[:, 0], len(self.backgrounds)), number_below(u[:, 1:], room + 1)

    def _frames(self, factors: Factors, path: Float[Tensor, "b t 2"]) -> UInt8[Tensor, "b t 3 s s"]:
        """Frames with these digits and backgrounds. The digit's positions are rounded to whole pixels, as in the
        original Moving MNIST."""
        device, side = self.digits.pixels.device, self.scene.canvas
        digit = self.digits.pixels[factors.digit.to(device), 0]
        background = _cut(self.backgrounds.pixels, factors.background.to(device), factors.crop.to(device), side)
        return compose_frames(digit, background, path.round().long().to(device))


def compose_frames(
    digit: UInt8[Tensor, "b d d"], background: UInt8[Tensor, "b 3 s s"], corner: Int[Tensor, "b t 2"]
) -> UInt8[Tensor, "b t 3 s s"]:
    """Each clip's digit on its background at each of t positions (x, y): per channel, the lighter of the two."""
    (clips, frames), side = corner.shape[:2], background.shape[-1]
    across = torch.arange(digit.shape[-1], device=digit.device)
    layer = digit.new_zeros(clips, frames, side, side)
    clip = torch.arange(clips, device=digit.device)[:, None, None, None]
    frame = torch.arange(frames, device=digit.device)[:, None, None]
    column, row = (corner[:, :, axis, None] + across for axis in (0, 1))
    layer[clip, frame, row[..., None], column[:, :, None]] = digit[:, None].expand(-1, frames, -1, -1)
    return torch.maximum(background[:, None], layer[:, :, None])


def normalize_pixels(frames: UInt8[Tensor, "*b 3 s s"]) -> Float[Tensor, "*b 3 s s"]:
    """Map pixels from 0 … 255 to −1 … 1, the range that the network takes (our choice)."""
    return frames.float().div_(127.5).sub_(1.0)


def _cut(
    pixels: UInt8[Tensor, "n 3 w w"], image: Int[Tensor, "b"], corner: Int[Tensor, "b 2"], side: int
) -> UInt8[Tensor, "b 3 {side} {side}"]:
    """A square of each chosen image, with `corner` (x, y) as its upper left corner."""
    across = torch.arange(side, device=pixels.device)
    column, row = (corner[:, axis, None] + across for axis in (0, 1))
    squares = pixels[image[:, None, None], :, row[:, :, None], column[:, None]]
    return squares.permute(0, 3, 1, 2).contiguous()
