"""What a backbone sees at its depths, before the pooling: for protocols that read more than the pooled features.

b: images   c: channels   h, w: height and width of an image   d: channels of a map   y, x: its height and width
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage.encoders.backbones import ResNetFeatures
from vantage.errors import UserError

__all__ = ["AtDepth", "maps"]


def maps(backbone: nn.Module, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b d y x"]]:
    """The maps of a backbone from shallow to deep.

    Of a residual network the five of the literature: the first convolution with BatchNorm and ReLU, before the
    max-pool, and the four stages. Of a timm model what its own `forward_intermediates` gives. Raises `UserError` for a
    backbone that is neither.
    """
    if isinstance(backbone, ResNetFeatures):
        x = backbone.relu(backbone.bn1(backbone.conv1(images)))
        found = [x]
        x = backbone.maxpool(x)
        for stage in (backbone.layer1, backbone.layer2, backbone.layer3, backbone.layer4):
            x = stage(x)
            found.append(x)
        return found
    if hasattr(backbone, "forward_intermediates"):
        inside: Any = backbone.forward_intermediates
        return list(inside(images, intermediates_only=True))
    raise UserError(
        f"{type(backbone).__name__} shows no maps, only pooled features: take a run with a ResNet or a timm backbone,"
        " one network of it (--network 0), or a protocol that reads pooled features"
    )


class AtDepth(nn.Module):
    """A backbone seen at one depth: pooled and flattened, a backbone itself, with `.width` features."""

    def __init__(self, backbone: nn.Module, depth: int, pool: nn.Module, example: Float[Tensor, "b c h w"]) -> None:
        """`depth` counts the maps from 0, or from −1 backwards; `pool` takes a map to a smaller one; `example` has the
        shape of the images, to know the width. Raises `UserError` where there is no such map."""
        super().__init__()
        self.backbone, self.depth, self.pool = backbone, depth, pool
        training = backbone.training
        backbone.eval()
        with torch.no_grad():
            found = maps(backbone, example)
            if not -len(found) <= depth < len(found):
                raise UserError(f"depth {depth} was asked for, but the backbone has {len(found)} maps")
            self.width: int = pool(found[depth]).flatten(1).shape[1]
        backbone.train(training)

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b _"]:
        """Features of each image."""
        return self.pool(maps(self.backbone, images)[self.depth]).flatten(1)

    def extra_repr(self) -> str:
        """The depth: part of what tells two of them apart."""
        return f"depth={self.depth}"
