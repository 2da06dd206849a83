"""Four convolutions from a backbone's map to the classes of pixels.

b: images   d: channels of the map   y, x: its height and width   k: classes   h, w: height and width in pixels
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vantage.encoders.backbones.depths import maps
from vantage.errors import UserError
from vantage.frozen.encoder import Pixels

__all__ = ["Decoder", "MapAt"]


class Decoder(nn.Module):
    """Three 3x3 convolutions with BatchNorm and ReLU, each followed by bilinear interpolation to twice the size, but no
    larger than the image; then a 3x3 convolution to the classes."""

    def __init__(self, channels: int, width: int, classes: int, side: int) -> None:
        """`channels` of the map, `width` channels inside, `side` of the image in pixels."""
        super().__init__()
        self.side = side
        inputs = (channels, width, width)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Conv2d(d, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
            for d in inputs
        )
        self.last = nn.Conv2d(width, classes, 3, padding=1)

    def forward(self, features: Float[Tensor, "b d y x"]) -> Float[Tensor, "b k h w"]:
        """A score for each class at each point of a grid up to eight times as fine as the map."""
        for layer in self.layers:
            high, wide = (max(length, min(2 * length, self.side)) for length in features.shape[2:])
            features = enlarge(layer(features), high, wide)
        return self.last(features)


class MapAt(nn.Module):
    """One map of a backbone, counted from 0, or backwards from −1."""

    def __init__(self, backbone: nn.Module, depth: int) -> None:
        super().__init__()
        self.backbone, self.depth = backbone, depth

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d y x"]:
        """The map; raises `UserError` for a backbone without maps, or without this one.

        Raw pixels have one: the image at an eighth of its size, which the decoder enlarges again.
        """
        if isinstance(self.backbone, Pixels):
            return F.adaptive_avg_pool2d(images, max(1, images.shape[2] // 8))
        all_maps = maps(self.backbone, images)
        if not -len(all_maps) <= self.depth < len(all_maps):
            raise UserError(
                f"depth is {self.depth}, but the backbone has {len(all_maps)} maps: give −1 or 0 to {len(all_maps) - 1}"
            )
        return all_maps[self.depth].float()


def enlarge(score: Float[Tensor, "b k y x"], height: int, width: int) -> Float[Tensor, "b k {height} {width}"]:
    """Scores interpolated to every pixel of an image."""
    return F.interpolate(score, (height, width), mode="bilinear", align_corners=False)


def pixel_loss(score: Float[Tensor, "b k h w"], mask: Tensor, ignore_index: int) -> Float[Tensor, ""]:
    """Mean cross-entropy over the pixels that have a class; 0 if none has."""
    total = F.cross_entropy(score, mask.long(), ignore_index=ignore_index, reduction="sum")
    return total / torch.clamp((mask != ignore_index).sum(), min=1)
