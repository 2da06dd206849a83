"""An encoder: images to unit vectors.

b: images   c: channels   h: height   w: width of an image   f: width of the features   d: width of the vectors
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage.encoders.backbones import Backbone, width_of
from vantage.encoders.heads import Head
from vantage.encoders.normalisation import BatchNorm, Normalisation


@dataclass(frozen=True)
class Encoder:
    """A backbone, a head on it, and which images share the statistics of their BatchNorm layers."""

    backbone: Backbone
    """From images to features; what is kept after training."""
    head: Head
    """From features to the vectors that are compared; thrown away after training."""
    normalisation: Normalisation = BatchNorm()
    """Which images share the statistics of BatchNorm, in the backbone and in the head."""

    def build(self) -> "EncoderNetwork":
        """A freshly initialised network; raises `UserError` where the backbone cannot be built."""
        backbone = self.backbone.build()
        head = self.head.build(width_of(backbone))
        return EncoderNetwork(
            self.normalisation.convert(backbone), self.normalisation.convert(head), width=self.head.width
        )


class EncoderNetwork(nn.Module):
    """The network of an `Encoder`: `backbone`, then `head`, then unit length."""

    backbone: nn.Module
    head: nn.Module
    width: int

    def __init__(self, backbone: nn.Module, head: nn.Module, width: int) -> None:
        """`backbone` to features with `.width`, `head` from these to vectors of `width`."""
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.width = width

    def features(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b f"]:
        """What the backbone makes of the images, pooled: what evaluations use."""
        return self.backbone(images)

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        """Vectors of unit length, in float32 at least, whatever the precision of the network."""
        return unit(self.head(self.features(images)))


def unit(vector: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
    """Each row divided by its length; half precisions become float32 first, for these cosines select and compare.

    A row of zeros stays zeros and gets no gradient: there is no direction to turn it to.
    """
    vector = vector if vector.dtype == torch.float64 else vector.float()
    length = torch.linalg.vector_norm(vector, dim=1, keepdim=True)
    tiny = torch.finfo(vector.dtype).tiny ** 0.5
    return torch.where(length > tiny, vector / length.clamp_min(tiny), 0.0)
