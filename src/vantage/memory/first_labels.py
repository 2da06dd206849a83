"""Which images share a cluster before the first clustering.

m: images
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

__all__ = ["Apart", "FirstLabels", "Together"]


@runtime_checkable
class FirstLabels(Protocol):
    """Which images share a cluster until the first clustering."""

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
