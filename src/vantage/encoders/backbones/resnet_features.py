"""torchvision's residual network up to its pooled features.

Importing torchvision takes as long as importing torch, since it loads a compiler. So nothing imports this module before
it builds such a network.

b: images   c: channels   h: height   w: width of an image   d: channels of a map   y, x: its height and width
"""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torchvision.models import resnet

__all__ = ["ResNetFeatures", "Stem"]


@dataclass(frozen=True)
class Stem:
    """The first convolution; the ordinary one, of 7 x 7 pixels, is followed by a max-pool."""

    in_channels: int = 3
    """Channels of the images."""

    width: int = 64
    """Channels of its result, and of the first stage before its expansion."""

    size: int = 7
    """Side of its kernel in pixels."""

    stride: int = 2
    """Its stride in pixels."""

    def build(self) -> nn.Conv2d:
        """The convolution, initialized as in torchvision."""
        stem = nn.Conv2d(self.in_channels, self.width, self.size, self.stride, padding=self.size // 2, bias=False)
        nn.init.kaiming_normal_(stem.weight, mode="fan_out", nonlinearity="relu")
        return stem


class ResNetFeatures(resnet.ResNet):
    """torchvision's ResNet up to the pooled features, without `fc`; parameters and buffers keep torchvision's names."""

    fc: nn.Module
    maxpool: nn.Module
    width: int

    def __init__(
        self, layers: tuple[int, ...], bottleneck: bool, stem: Stem, groups: int, width_per_group: int, zero_init: bool
    ) -> None:
        """The network, initialized as in torchvision; `layers`: blocks in each stage."""
        self._stem_width = stem.width
        block = resnet.Bottleneck if bottleneck else resnet.BasicBlock
        super().__init__(
            block,
            list(layers),
            num_classes=1,
            zero_init_residual=zero_init,
            groups=groups,
            width_per_group=width_per_group,
        )
        self.width = 8 * stem.width * block.expansion
        self.fc = nn.Identity()
        if stem != Stem():
            self.conv1 = stem.build()
        if stem.size != Stem.size:
            self.maxpool = nn.Identity()
        if stem.width != Stem.width:
            self.bn1 = nn.BatchNorm2d(stem.width)

    def _make_layer(self, block: Any, planes: int, blocks: int, stride: int = 1, dilate: bool = False) -> nn.Sequential:
        """torchvision's stage, with the number of channels of this choice."""
        if planes == Stem.width:
            self.inplanes = self._stem_width
        return super()._make_layer(block, planes * self._stem_width // Stem.width, blocks, stride, dilate)

    def maps(self, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b d y x"]]:
        """The usual five maps of the literature, from shallow to deep: the first convolution with BatchNorm and ReLU,
        before the max-pool, and the four stages."""
        x = self.relu(self.bn1(self.conv1(images)))
        stages = [x]
        x = self.maxpool(x)
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
            stages.append(x)
        return stages
