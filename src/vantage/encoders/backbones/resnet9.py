"""A residual network of nine layers, narrow enough to train on a CPU.

b: images   c: channels   h: height   w: width of an image   d: width of the features
"""

from dataclasses import dataclass, field
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from vantage.errors import UserError


@dataclass(frozen=True)
class ResNet9:
    """A stem and three stages of 3 × 3 convolutions with BatchNorm and ReLU, then the mean over positions (Page's
    network for the DAWNBench contest, "How to train your ResNet", 2018).

    Each stage is a convolution and a max-pool, followed in the first and the third by a residual block. Channels are w,
    2w, 4w and 8w, so the features are 8 · `width` wide. Page uses w = 64 and ends in a max-pool and a classifier; here
    the end is the mean, as in other residual networks. A width of 16 suits minutes on two cores, 32 suits hours. Use a
    stem of stride 1 for views of 32 px, and of stride 2 for 64 px and more. Views need at least 8 px at stride 1, 15 px
    at stride 2.
    """

    width: int = 64
    """Channels of the first convolution; the features have eight times as many."""

    stem_stride: Literal[1, 2] = 1
    """Stride of the first convolution: 1 for 32 px, 2 for 64 px and more."""

    in_channels: int = 3
    """Channels of the images."""

    features: int = field(default=0, metadata={"later": True})
    """Width of the features, if another than 8 · `width`: a 1 × 1 convolution with BatchNorm and ReLU before the mean,
    as in MobileNetV2 (Sandler et al. 2018). Narrow networks then have room for a linear classifier, at little cost; 0:
    none."""

    def __post_init__(self) -> None:
        if min(self.width, self.in_channels) < 1:
            raise UserError(
                f"ResNet9: width is {self.width} and in_channels {self.in_channels}; both must be 1 or more"
            )
        if self.features < 0:
            raise UserError(f"ResNet9: features is {self.features}; it must be 0 or more")
        if self.stem_stride not in (1, 2):
            raise UserError(f"ResNet9: stem_stride is {self.stem_stride}; choose 1 or 2")

    def build(self) -> "ResNet9Features":
        """The freshly initialized network."""
        return ResNet9Features(self.width, self.stem_stride, self.in_channels, self.features)


class ResNet9Features(nn.Module):
    """The network of `ResNet9`: `stem`, three stages, a wider last map if one is asked for, and its mean."""

    width: int

    def __init__(self, width: int, stem_stride: int, in_channels: int, features: int = 0) -> None:
        super().__init__()
        self.stem = _layer(in_channels, width, stem_stride)
        self.layer1 = nn.Sequential(*_layer(width, 2 * width, pool=True), Residual(2 * width))
        self.layer2 = _layer(2 * width, 4 * width, pool=True)
        self.layer3 = nn.Sequential(*_layer(4 * width, 8 * width, pool=True), Residual(8 * width))
        self.wider = _layer(8 * width, features, kernel=1) if features else nn.Identity()
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.width = features or 8 * width

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        """The mean of the last map over its positions."""
        return self.pool(self.wider(self.layer3(self.layer2(self.layer1(self.stem(images))))))

    def maps(self, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b _ _ _"]]:
        """The outputs of the stem and of the three stages."""
        maps = [self.stem(images)]
        for stage in (self.layer1, self.layer2, self.layer3):
            maps.append(stage(maps[-1]))
        return maps


class Residual(nn.Module):
    """Two convolutions whose output is added to their input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(*_layer(channels, channels), *_layer(channels, channels))

    def forward(self, maps: Float[Tensor, "b d h w"]) -> Float[Tensor, "b d h w"]:
        """x + f(x)."""
        return maps + self.convolutions(maps)


def _layer(before: int, after: int, stride: int = 1, kernel: int = 3, pool: bool = False) -> nn.Sequential:
    convolution = nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    layers = [convolution, nn.BatchNorm2d(after)]
    # ReLU and a maximum commute, with the same gradients: after the pool, ReLU has a quarter of the numbers.
    return nn.Sequential(*layers, *([nn.MaxPool2d(2)] if pool else []), nn.ReLU())
