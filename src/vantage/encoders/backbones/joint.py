"""Several backbones joined into one, each applied to some of the channels.

b: images   c: channels   h, w: size of an image in pixels   d: width of the features
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage.encoders.backbones.depths import maps
from vantage.encoders.backbones.resnet import width_of

__all__ = ["Joined"]


class Joined(nn.Module):
    """Several backbones side by side, each on its channels of the image; their features are concatenated."""

    def __init__(self, backbones: list[nn.Module], channels: list[list[int]]) -> None:
        """`channels` holds, for each backbone, the numbers of its channels."""
        super().__init__()
        self.backbones, self.channels = nn.ModuleList(backbones), channels
        self.width = sum(width_of(backbone) for backbone in backbones)

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        """The features of all backbones, in order."""
        pairs = zip(self.backbones, self.channels, strict=True)
        return torch.cat([backbone(images[:, channels]) for backbone, channels in pairs], 1)

    def maps(self, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b d _ _"]]:
        """At each depth the maps of all backbones, joined along the channels."""
        pairs = zip(self.backbones, self.channels, strict=True)
        each = [maps(backbone, images[:, channels]) for backbone, channels in pairs]
        return [torch.cat(depth, 1) for depth in zip(*each, strict=True)]

    def extra_repr(self) -> str:
        """The channels, so that modules that differ in them print differently."""
        return f"channels={self.channels}"
