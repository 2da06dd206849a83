"""An encoder: from images, or patches of images, to unit vectors.

b: images   n: patches of a jigsaw   c: channels   h: height   w: width of an image   f: width of the features
d: width of the vectors
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage.encoders.backbones.resnet import Backbone, width_of
from vantage.encoders.heads import Head, JigsawHead
from vantage.encoders.normalization.choices import BatchNorm, Normalization
from vantage.errors import UserError


@dataclass(frozen=True)
class Encoder:
    """A backbone, a head on it, and a choice of which images share BatchNorm statistics."""

    backbone: Backbone
    """The network from images to features; it is kept after training."""
    head: Head
    """The network from features to the vectors that are compared; it is discarded after training."""
    normalization: Normalization = BatchNorm()
    """Which images share the statistics of BatchNorm, in the backbone and in the head."""
    jigsaw: JigsawHead | None = None
    """The head for views made of patches; None if every view is a whole image. It is discarded after training."""

    def __post_init__(self) -> None:
        if self.jigsaw is not None and self.jigsaw.width != self.head.width:
            raise UserError(
                f"vectors of whole images have width {self.head.width}, those of jigsaws {self.jigsaw.width}, but they"
                " are compared: give both heads the same width"
            )

    def build(self) -> "EncoderNetwork":
        """A freshly initialized network; raises `UserError` if the backbone cannot be built."""
        backbone = self.backbone.build()
        width = width_of(backbone)
        head = self.normalization.convert(self.head.build(width))
        jigsaw = None if self.jigsaw is None else self.normalization.convert(self.jigsaw.build(width))
        return EncoderNetwork(self.normalization.convert(backbone), head, self.head.width, jigsaw)


class EncoderNetwork(nn.Module):
    """The network of an `Encoder`: `backbone`, then `head` (for patches `jigsaw`), then scaling to unit length."""

    backbone: nn.Module
    head: nn.Module
    jigsaw: nn.Module | None
    width: int

    def __init__(self, backbone: nn.Module, head: nn.Module, width: int, jigsaw: nn.Module | None = None) -> None:
        """`backbone` maps images to features and has `.width`; `head` maps features to vectors of width `width`;
        `jigsaw` maps the features of an image's patches to one such vector."""
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.jigsaw = jigsaw
        self.width = width

    def features(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b f"]:
        """The backbone's pooled features, which evaluations use."""
        return self.backbone(images)

    def forward(self, images: Float[Tensor, "b c h w"] | Float[Tensor, "b n c h w"]) -> Float[Tensor, "b d"]:
        """Vectors of unit length, at least in float32, whatever the precision of the network.

        Images with a fifth axis are patches; raises `UserError` if there is no head for them.
        """
        if images.ndim == 4:
            return unit(self.head(self.features(images)))
        if self.jigsaw is None:
            raise UserError("a view is made of patches, but the encoder has no head for them: give Encoder.jigsaw one")
        features = self.features(images.flatten(0, 1)).unflatten(0, images.shape[:2])
        return unit(self.jigsaw(features))


def unit(vector: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
    """Each row divided by its length; half precision becomes float32 first, since cosines rank the keys.

    A row of zeros stays zero and gets no gradient, since it has no direction.
    """
    vector = vector if vector.dtype == torch.float64 else vector.float()
    length = torch.linalg.vector_norm(vector, dim=1, keepdim=True)
    tiny = torch.finfo(vector.dtype).tiny ** 0.5
    return torch.where(length > tiny, vector / length.clamp_min(tiny), 0.0)
