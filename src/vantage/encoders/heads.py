"""Heads: from features to the vectors that are compared.

b: images   n: patches of a jigsaw   f: width of the features   d: width of the vectors

A head is a frozen choice; `build(features)` returns a module from (b, f) to (b, d). The network of `Encoder` scales its
vectors to unit length. The head is discarded after training.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from vantage.errors import UserError


@runtime_checkable
class Head(Protocol):
    """A frozen choice of a network from features to the vectors that are compared."""

    @property
    def width(self) -> int:
        """Width d of the vectors."""
        ...

    def build(self, features: int) -> nn.Module:
        """A freshly initialized module from (b, `features`) to (b, d)."""
        ...


def _positive(head: object, field: str, value: int) -> None:
    if value < 1:
        raise UserError(f"{type(head).__name__}: {field} is {value}; it must be 1 or more")


@dataclass(frozen=True)
class LinearHead:
    """One linear layer with bias: instance discrimination, CMC and MoCo v1 (arXiv 1805.01978, 1911.05722)."""

    width: int = 128
    """Width of the vectors."""

    def __post_init__(self) -> None:
        _positive(self, "width", self.width)

    def build(self, features: int) -> nn.Module:
        """Linear(features, width)."""
        return nn.Linear(features, self.width)


@dataclass(frozen=True)
class MLP:
    """Linear, ReLU, linear, both with bias and without BatchNorm: MoCo v2 (arXiv 2003.04297), SimCLR in VISSL.

    MoCo v2 makes the hidden layer as wide as the features: 2048 for ResNet-50, 512 for ResNet-18.
    """

    hidden: int = 2048
    """Width of the hidden layer."""
    width: int = 128
    """Width of the vectors."""

    def __post_init__(self) -> None:
        _positive(self, "hidden", self.hidden)
        _positive(self, "width", self.width)

    def build(self, features: int) -> nn.Module:
        """Linear(features, hidden), ReLU, Linear(hidden, width)."""
        return nn.Sequential(nn.Linear(features, self.hidden), nn.ReLU(), nn.Linear(self.hidden, self.width))


@dataclass(frozen=True)
class NormalizedMLP:
    """Linear, BatchNorm, ReLU, linear, BatchNorm: SimCLR (arXiv 2002.05709), in the form that mmselfsup trains.

    Neither linear layer has a bias, since the BatchNorm after it would remove it; both BatchNorms have a scale and a
    shift. Their statistics follow the encoder's choice of normalization.
    """

    hidden: int = 2048
    """Width of the hidden layer."""
    width: int = 128
    """Width of the vectors."""

    def __post_init__(self) -> None:
        _positive(self, "hidden", self.hidden)
        _positive(self, "width", self.width)

    def build(self, features: int) -> nn.Module:
        """Linear(features, hidden), BatchNorm, ReLU, Linear(hidden, width), BatchNorm."""
        return nn.Sequential(
            OrderedDict(
                fc1=nn.Linear(features, self.hidden, bias=False),
                bn1=nn.BatchNorm1d(self.hidden),
                relu=nn.ReLU(),
                fc2=nn.Linear(self.hidden, self.width, bias=False),
                bn2=nn.BatchNorm1d(self.width),
            )
        )


@dataclass(frozen=True)
class JigsawHead:
    """From the features of an image's patches to one vector: a head shared by the patches, concatenation, one linear
    layer (PIRL, arXiv 1912.01991, in the form of the PyContrast code).

    PIRL's patch head is a linear layer, that of InfoMin (arXiv 2005.10243) an MLP. `Encoder.jigsaw` holds this head
    beside the one for whole images.
    """

    patch: Head = LinearHead(128)
    """The head of every patch."""
    width: int = 128
    """Width of the image's vector; equal to that of the head for whole images, since the two are compared."""
    patches: int = 9
    """Number of patches of an image."""

    def __post_init__(self) -> None:
        _positive(self, "width", self.width)
        _positive(self, "patches", self.patches)

    def build(self, features: int) -> "JigsawNetwork":
        """A freshly initialized module from (b, n, `features`) to (b, d)."""
        join = nn.Linear(self.patch.width * self.patches, self.width)
        return JigsawNetwork(self.patch.build(features), join, self.patches)


class JigsawNetwork(nn.Module):
    """The network of a `JigsawHead`: `patch` for every patch, then `joined`."""

    patch: nn.Module
    joined: nn.Module

    def __init__(self, patch: nn.Module, joined: nn.Module, patches: int) -> None:
        super().__init__()
        self.patch, self.joined, self.patches = patch, joined, patches

    def forward(self, features: Float[Tensor, "b n f"]) -> Float[Tensor, "b d"]:
        """One vector for each image; raises `UserError` unless there are as many patches as it was built for."""
        if features.shape[1] != self.patches:
            raise UserError(
                f"the jigsaw head was built for {self.patches} patches, but the view has {features.shape[1]}:"
                " set JigsawHead.patches to the square of Jigsaw.cells"
            )
        return self.joined(self.patch(features.flatten(0, 1)).unflatten(0, features.shape[:2]).flatten(1))
