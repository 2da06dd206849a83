"""Which images share a cluster before the first clustering, or without any.

m: images
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from vantage.schedules.checks import at_least

__all__ = ["Apart", "Blocks", "FirstLabels", "Together"]


@runtime_checkable
class FirstLabels(Protocol):
    """Which images share a cluster until the first clustering, or for good in a `LabeledBank`."""

    def of(self, image: Int[Tensor, "m"]) -> Int[Tensor, "m"]:
        """A label from 0 to m − 1 for each image."""
        ...


@dataclass(frozen=True)
class Apart:
    """Every image is a cluster of its own; for branches whose positives are cluster mates."""

    def of(self, image: Int[Tensor, "m"]) -> Int[Tensor, "m"]:
        """The image's own number."""
        return image.clone()


@dataclass(frozen=True)
class Together:
    """All images form one cluster; for branches whose negatives are cluster mates."""

    def of(self, image: Int[Tensor, "m"]) -> Int[Tensor, "m"]:
        """0 for every image."""
        return torch.zeros_like(image)


@dataclass(frozen=True)
class Blocks:
    """The images in order, cut into blocks of equal size (to within one image): the classes of a set that is sorted by
    class and has equally many images of each."""

    count: int = 2
    """Number of blocks; at most one per image is made."""

    def __post_init__(self) -> None:
        at_least(self, 1, "count")

    def of(self, image: Int[Tensor, "m"]) -> Int[Tensor, "m"]:
        """The number of the image's block."""
        return image * min(self.count, len(image)) // max(1, len(image))
