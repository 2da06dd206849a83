"""A backbone small enough to train on a CPU: a few convolutions, then the mean over positions.

b: images   c: channels   h: height   w: width of an image   d: width of the features
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from vantage.errors import UserError


@dataclass(frozen=True)
class Convolutions:
    """3 × 3 convolutions that each halve the resolution, with BatchNorm and ReLU; then the mean over positions.

    Not from a paper. It is for short runs, and for the critics of `vantage views learn`, without a GPU.
    """

    widths: tuple[int, ...] = (32, 64, 128, 256)
    """Channels of each convolution; the last is the width of the features."""

    in_channels: int = 3
    """Channels of the images."""

    def __post_init__(self) -> None:
        if not self.widths or min(*self.widths, self.in_channels) < 1:
            raise UserError(
                f"Convolutions with widths {self.widths} on {self.in_channels} channels: give at least one width;"
                " all must be 1 or more"
            )

    def build(self) -> "ConvolutionFeatures":
        """The freshly initialized network."""
        return ConvolutionFeatures(self.widths, self.in_channels)


class ConvolutionFeatures(nn.Module):
    """The network of `Convolutions`."""

    width: int

    def __init__(self, widths: tuple[int, ...], in_channels: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in zip((in_channels, *widths), widths, strict=False):
            layers += [nn.Conv2d(before, after, 3, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.width = widths[-1]

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        """The mean of the last map over its positions."""
        return self.layers(images)

    def maps(self, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b _ _ _"]]:
        """The output of each convolution, after BatchNorm and ReLU."""
        maps, x = [], images
        for layer in self.layers:
            x = layer(x)
            if isinstance(layer, nn.ReLU):
                maps.append(x)
        return maps
