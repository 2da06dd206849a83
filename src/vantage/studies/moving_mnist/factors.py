"""The factors of a frame: the digit, its position, the background, and the crop of the background.

b: clips   n: images in the set   s: any shape
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
    """The factors of b frames, one for each clip."""

    digit: Int[Tensor, "b"]
    """Index of the digit's image in its set."""

    background: Int[Tensor, "b"]
    """Index of the background's image in its set."""

    crop: Int[Tensor, "b 2"]
    """x and y of the crop's upper left corner in the background image, in pixels."""

    place: Float[Tensor, "b 2"]
    """x and y of the digit's upper left corner on the canvas, in pixels."""

    def __len__(self) -> int:
        return len(self.digit)

    @staticmethod
    def concatenate(parts: Sequence["Factors"]) -> "Factors":
        """Concatenate the factors of several batches."""
        rows = ([getattr(part, f.name) for part in parts] for f in fields(Factors))
        return Factors(*map(torch.cat, rows))


def combine_factors(clip: Factors, other: Factors, shared: SharedFactors) -> Factors:
    """The shared factors of a clip's last frame, and the other factors of an unrelated frame."""
    factors = replace(other, digit=clip.digit) if shared.digit else other
    factors = replace(factors, background=clip.background, crop=clip.crop) if shared.background else factors
    return replace(factors, place=clip.place) if shared.location else factors


@runtime_checkable
class SameDigit(Protocol):
    """What it means that two views share a digit."""

    def __call__(
        self, digit: Int[Tensor, "b"], label: Int[Tensor, "n"], uniform: Float[Tensor, "b"]
    ) -> Int[Tensor, "b"]:
        """The index of the second view's digit for each clip's `digit`. `label` holds the label of every image, and
        `uniform` one random number in [0, 1) per clip."""
        ...


@dataclass(frozen=True)
class SameImage:
    """A shared digit is the same image."""

    def __call__(
        self, digit: Int[Tensor, "b"], label: Int[Tensor, "n"], uniform: Float[Tensor, "b"]
    ) -> Int[Tensor, "b"]:
        """The clip's own digit."""
        return digit


@dataclass(frozen=True)
class SameClass:
    """A shared digit is any image of the same class, so that the views do not share the handwriting."""

    def __call__(
        self, digit: Int[Tensor, "b"], label: Int[Tensor, "n"], uniform: Float[Tensor, "b"]
    ) -> Int[Tensor, "b"]:
        """A uniformly drawn image of the class."""
        order = label.argsort(stable=True)
        count = label.bincount()
        first = count.cumsum(0) - count
        class_of_clip = label[digit]
        return order[first[class_of_clip] + number_below(uniform, count[class_of_clip])]


def number_below(uniform: Float[Tensor, "*s"], below: int | Int[Tensor, "*s"]) -> Int[Tensor, "*s"]:
    """Map uniform numbers in [0, 1) to integers from 0 to below − 1 with equal probability."""
    return (uniform * below).floor().long().clamp(max=below - 1)  # rounding could reach `below`
