"""A backbone's feature maps at several depths, for protocols that read more than the pooled features.

b: images   c: channels   h, w: height and width of an image   d: channels of a map   y, x: its height and width
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage.encoders.modes import in_evaluation
from vantage.errors import UserError

__all__ = ["GRIDS", "AtDepth", "AtDepths", "Depth", "HasMaps", "example_maps", "grid_pool", "maps"]

GRIDS = (12, 6, 4, 3, 2)
"""Linear protocols at several depths average the five maps of a network to grids of this many rows and columns, from
shallow to deep: about 9,000 numbers each for ResNet-50 (Goyal et al., arXiv 1905.01235)."""

_RELEASED = {(12, 112): (10, 10, 4), (6, 56): (16, 8, 0), (4, 28): (13, 5, 0), (3, 14): (8, 3, 0), (2, 7): (6, 1, 0)}
"""Kernel, stride and padding in the released code, by (grid, side of the map), for images of 224 pixels."""


@runtime_checkable
class HasMaps(Protocol):
    """A backbone with a method that returns its maps."""

    def maps(self, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b d y x"]]:
        """Maps from shallow to deep."""
        ...


def maps(backbone: nn.Module, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b d y x"]]:
    """The maps of a backbone from shallow to deep.

    They come from its method `maps`, or for a timm model from `forward_intermediates`. Raises `UserError` for any other
    backbone.
    """
    if isinstance(backbone, HasMaps):
        return backbone.maps(images)
    if hasattr(backbone, "forward_intermediates"):
        intermediates: Any = backbone.forward_intermediates
        return list(intermediates(images, intermediates_only=True))
    raise UserError(
        f"{type(backbone).__name__} has no maps, only pooled features: use a run with a ResNet or a timm backbone, or a"
        " protocol that reads pooled features; a network of your own needs a method maps(images)"
    )


def grid_pool(grid: int, height: int, width: int) -> nn.Module:
    """The pooling that averages a map of `height` by `width` to `grid` rows and columns.

    If the released code has kernel, stride and padding for a map of this size, they are used; as there, the zeros of
    the padding count in the averages at the edges. Other sizes use adaptive pooling to the same grid, or to the map's
    own size if that is smaller.
    """
    if height == width and (grid, height) in _RELEASED:
        return nn.AvgPool2d(*_RELEASED[grid, height])
    return nn.AdaptiveAvgPool2d((min(grid, height), min(grid, width)))


class AtDepth(nn.Module):
    """A backbone read at one depth, pooled and flattened. It is itself a backbone, with `.width` features."""

    def __init__(self, backbone: nn.Module, depth: int, pool: nn.Module, example: Float[Tensor, "b c h w"]) -> None:
        """`depth` counts maps from 0, or backwards from −1; `pool` reduces a map to a smaller one; `example` has the
        shape of the images, and determines the width. Raises `UserError` if there is no such map."""
        super().__init__()
        self.backbone, self.depth, self.pool = backbone, depth, pool
        layers = example_maps(backbone, example)
        if not -len(layers) <= depth < len(layers):
            raise UserError(f"depth {depth} was asked for, but the backbone has {len(layers)} maps")
        self.width: int = pool(layers[depth]).flatten(1).shape[1]

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b _"]:
        """Features of each image."""
        return self.pool(maps(self.backbone, images)[self.depth]).flatten(1)

    def extra_repr(self) -> str:
        """The depth, so that modules that differ in it print differently."""
        return f"depth={self.depth}"


class Depth(NamedTuple):
    """The features of one depth, which are a part of each row of features."""

    name: str
    """Name in a table."""
    width: int
    """Number of features."""
    channels: int
    """Channels of the map. The features are ordered channel by channel, with all positions of each channel."""


class AtDepths(nn.Module):
    """A backbone read at several depths in one pass: the maps, each averaged to a grid, are flattened and concatenated.

    These are the last five maps, or all maps if there are fewer; the deepest is averaged to 2 by 2 (`GRIDS`).
    """

    def __init__(self, backbone: nn.Module, example: Float[Tensor, "b c h w"]) -> None:
        """`example` has the shape of the images, and determines the widths."""
        super().__init__()
        layers = example_maps(backbone, example)
        self.first = max(0, len(layers) - len(GRIDS))
        layers = layers[self.first :]
        self.backbone = backbone
        grids = GRIDS[len(GRIDS) - len(layers) :]
        pools = [grid_pool(grid, *one.shape[2:]) for grid, one in zip(grids, layers, strict=True)]
        self.pools = nn.ModuleList(pools)
        self.depths: tuple[Depth, ...] = tuple(
            Depth(f"depth {number + 1}", pool(one).flatten(1).shape[1], one.shape[1])
            for number, (pool, one) in enumerate(zip(pools, layers, strict=True))
        )
        self.width: int = sum(depth.width for depth in self.depths)

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b _"]:
        """Features of each image, those of the shallowest depth first."""
        layers = maps(self.backbone, images)[self.first :]
        return torch.cat([pool(one).flatten(1) for pool, one in zip(self.pools, layers, strict=True)], 1)


def example_maps(backbone: nn.Module, example: Float[Tensor, "b c h w"]) -> Sequence[Float[Tensor, "b d y x"]]:
    """The maps of an example, in evaluation mode."""
    with torch.no_grad(), in_evaluation(backbone):
        return maps(backbone, example)
