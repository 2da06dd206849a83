"""The factors of a frame: which digit, where, and on which crop of which background.

b: clips   n: images of the stock   k: random numbers
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage.studies.moving_mnist.shared_factors import SharedFactors

__all__ = ["Factors", "SameClass", "SameDigit", "SameImage", "combine_factors", "number_below"]


@dataclass(frozen=True)
class Factors:
    """The factors of one frame of each of b clips."""

    digit: Int[Tensor, "b"]
    """Number of the digit's image in the stock."""

    background: Int[Tensor, "b"]
    """Number of the background's image in the stock."""

    crop: Int[Tensor, "b 2"]
    """x and y of the crop's upper left corner in the background's image, in pixels."""

    place: Float[Tensor, "b 2"]
    """x and y of the digit's upper left corner on the canvas, in pixels."""

    def __len__(self) -> int:
        return len(self.digit)

    @staticmethod
    def concatenate(parts: Sequence["Factors"]) -> "Factors":
        """Those of several batches, one behind the other."""
        rows = ([getattr(part, f.name) for part in parts] for f in fields(Factors))
        return Factors(*map(torch.cat, rows))


def combine_factors(clip: Factors, other: Factors, shared: SharedFactors) -> Factors:
    """The shared factors of a clip's last frame, and the others of a frame that has nothing to do with it."""
    factors = replace(other, digit=clip.digit) if shared.digit else other
    factors = replace(factors, background=clip.background, crop=clip.crop) if shared.background else factors
    return replace(factors, place=clip.place) if shared.location else factors


@runtime_checkable
class SameDigit(Protocol):
    """What it means that the digit is shared."""

    def __call__(
        self, digit: Int[Tensor, "b"], label: Int[Tensor, "n"], uniform: Float[Tensor, "b"]
    ) -> Int[Tensor, "b"]:
        """The number of the second view's digit for each clip's own; `label` is that of every image, `uniform` in
        [0, 1) what it draws from."""
        ...


@dataclass(frozen=True)
class SameImage:
    """A shared digit is the same picture of it."""

    def __call__(
        self, digit: Int[Tensor, "b"], label: Int[Tensor, "n"], uniform: Float[Tensor, "b"]
    ) -> Int[Tensor, "b"]:
        """The clip's own."""
        return digit


@dataclass(frozen=True)
class SameClass:
    """A shared digit is any picture of the same class, so that the views have nothing of the handwriting in common."""

    def __call__(
        self, digit: Int[Tensor, "b"], label: Int[Tensor, "n"], uniform: Float[Tensor, "b"]
    ) -> Int[Tensor, "b"]:
        """Each picture of the class is as likely."""
        order = label.argsort(stable=True)
        count = label.bincount()
        first = count.cumsum(0) - count
        class_of_clip = label[digit]
        return order[first[class_of_clip] + number_below(uniform, count[class_of_clip])]


def number_below(uniform: Float[Tensor, "*s"], below: int | Int[Tensor, "*s"]) -> Int[Tensor, "*s"]:
    """Uniform numbers in [0, 1) to whole numbers from 0 to below − 1, each as likely."""
    return (uniform * below).floor().long().clamp(max=below - 1)  # rounding could reach it
