"""What a backbone sees at its depths, before the pooling: for protocols that read more than the pooled features.

b: images   c: channels   h, w: height and width of an image   d: channels of a map   y, x: its height and width
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage.encoders.backbones import ResNetFeatures
from vantage.errors import UserError

__all__ = ["GRIDS", "AtDepth", "AtDepths", "Depth", "HasMaps", "grid_pool", "maps"]

GRIDS = (12, 6, 4, 3, 2)
"""Rows and columns that the five maps of a network are averaged to, from shallow to deep, in linear protocols of
several depths: about 9,000 numbers each for ResNet-50 (Goyal et al., arXiv 1905.01235)."""

_RELEASED = {(12, 112): (10, 10, 4), (6, 56): (16, 8, 0), (4, 28): (13, 5, 0), (3, 14): (8, 3, 0), (2, 7): (6, 1, 0)}
"""Kernel, stride and padding of the released code, by grid and side of the map (images of 224 pixels)."""


@runtime_checkable
class HasMaps(Protocol):
    """A backbone that shows its maps itself."""

    def maps(self, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b d y x"]]:
        """Maps from shallow to deep."""
        ...


def maps(backbone: nn.Module, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b d y x"]]:
    """The maps of a backbone from shallow to deep.

    Of a residual network the five of the literature: the first convolution with BatchNorm and ReLU, before the
    max-pool, and the four stages. Of a timm model what its own `forward_intermediates` gives. Of a backbone with a
    method `maps` what that gives. Raises `UserError` for any other.
    """
    if isinstance(backbone, ResNetFeatures):
        x = backbone.relu(backbone.bn1(backbone.conv1(images)))
        found = [x]
        x = backbone.maxpool(x)
        for stage in (backbone.layer1, backbone.layer2, backbone.layer3, backbone.layer4):
            x = stage(x)
            found.append(x)
        return found
    if isinstance(backbone, HasMaps):
        return backbone.maps(images)
    if hasattr(backbone, "forward_intermediates"):
        inside: Any = backbone.forward_intermediates
        return list(inside(images, intermediates_only=True))
    raise UserError(
        f"{type(backbone).__name__} shows no maps, only pooled features: take a run with a ResNet or a timm backbone,"
        " or a protocol that reads pooled features"
    )


def grid_pool(grid: int, high: int, wide: int) -> nn.Module:
    """What averages a map of `high` by `wide` to `grid` rows and columns.

    Where the released code states kernel, stride and padding for the size of the map, these (their edges count the
    zeros of the padding, as there). For other sizes adaptive pooling to the same grid, or to the map's own size where
    that is smaller.
    """
    if high == wide and (grid, high) in _RELEASED:
        return nn.AvgPool2d(*_RELEASED[grid, high])
    return nn.AdaptiveAvgPool2d((min(grid, high), min(grid, wide)))


class AtDepth(nn.Module):
    """A backbone seen at one depth: pooled and flattened, a backbone itself, with `.width` features."""

    def __init__(self, backbone: nn.Module, depth: int, pool: nn.Module, example: Float[Tensor, "b c h w"]) -> None:
        """`depth` counts the maps from 0, or from −1 backwards; `pool` takes a map to a smaller one; `example` has the
        shape of the images, to know the width. Raises `UserError` where there is no such map."""
        super().__init__()
        self.backbone, self.depth, self.pool = backbone, depth, pool
        found = _shown(backbone, example)
        if not -len(found) <= depth < len(found):
            raise UserError(f"depth {depth} was asked for, but the backbone has {len(found)} maps")
        self.width: int = pool(found[depth]).flatten(1).shape[1]

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b _"]:
        """Features of each image."""
        return self.pool(maps(self.backbone, images)[self.depth]).flatten(1)

    def extra_repr(self) -> str:
        """The depth: part of what tells two of them apart."""
        return f"depth={self.depth}"


class Depth(NamedTuple):
    """Which of a row of features are those of one depth."""

    name: str
    """What it is called in a table."""
    width: int
    """How many features."""
    channels: int
    """How many channels of the map; the features are channel by channel, each with its places."""


class AtDepths(nn.Module):
    """A backbone seen at several depths in one pass: the features of each, averaged to a grid, one after the other.

    The last five maps are seen, or as many as there are; the deepest in a grid of 2 by 2 (`GRIDS`).
    """

    def __init__(self, backbone: nn.Module, example: Float[Tensor, "b c h w"]) -> None:
        """`example` has the shape of the images, to know the widths."""
        super().__init__()
        found = _shown(backbone, example)
        self.first = max(0, len(found) - len(GRIDS))
        found = found[self.first :]
        self.backbone = backbone
        grids = GRIDS[len(GRIDS) - len(found) :]
        pools = [grid_pool(grid, *one.shape[2:]) for grid, one in zip(grids, found, strict=True)]
        self.pools = nn.ModuleList(pools)
        self.depths: tuple[Depth, ...] = tuple(
            Depth(f"depth {number + 1}", pool(one).flatten(1).shape[1], one.shape[1])
            for number, (pool, one) in enumerate(zip(pools, found, strict=True))
        )
        self.width: int = sum(depth.width for depth in self.depths)

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b _"]:
        """Features of each image, those of the shallowest depth first."""
        found = maps(self.backbone, images)[self.first :]
        return torch.cat([pool(one).flatten(1) for pool, one in zip(self.pools, found, strict=True)], 1)


def _shown(backbone: nn.Module, example: Float[Tensor, "b c h w"]) -> Sequence[Float[Tensor, "b d y x"]]:
    """The maps of an example, in evaluation mode; the mode stays what it was."""
    before = [(part, part.training) for part in backbone.modules()]
    backbone.eval()
    try:
        with torch.no_grad():
            return maps(backbone, example)
    finally:
        for part, training in before:
            part.training = training
