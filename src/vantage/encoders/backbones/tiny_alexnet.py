"""The small AlexNet with which InfoMin studies views of STL-10.

b: images   c: channels   h: height   w: width of an image   d: width of the features
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from vantage.errors import UserError

__all__ = ["TinyAlexNet", "TinyAlexNetFeatures"]

_CHANNELS, _POOLED, _HIDDEN = (96, 192, 384, 384, 192), (0, 1, 4), 4096


@dataclass(frozen=True)
class TinyAlexNet:
    """Five convolutions of 3 × 3, a max-pool of 3 and stride 2 after the first, the second and the fifth, and two
    layers of 4,096, all with BatchNorm and ReLU.

    The "tiny AlexNet" of InfoMin's studies on STL-10 (Tian et al., arXiv 2005.10243, appendices B.1 to B.3), taken from
    Deep InfoMax (Hjelm et al., arXiv 1808.06670). Neither paper lists its layers; these are from the public version in
    Wang and Isola's code (arXiv 2005.10242). Features are the output of the second of the two layers (fc7), and a
    `LinearHead` is the papers' last layer. Protocols that read several depths use the five convolutions, of which conv5
    is the deepest. The number of weights depends on the image size, so a network takes only images of its own size.
    """

    image_size: int = 64
    """Side of the images in pixels, 15 or more; the papers use 64."""

    in_channels: int = 3
    """Channels of the images."""

    width_multiplier: float = 1.0
    """Channels of every layer, as a multiple of the usual number: .5 if a network is split into two, as in CMC (arXiv
    1906.05849); a multiple of 1/32."""

    def __post_init__(self) -> None:
        if self.image_size < 15 or self.in_channels < 1:
            raise UserError(
                f"TinyAlexNet: image_size is {self.image_size} and in_channels {self.in_channels}; give at least 15 and"
                " at least 1"
            )
        if not (32.0 * self.width_multiplier).is_integer() or self.width_multiplier <= 0:
            raise UserError(
                f"TinyAlexNet: width_multiplier is {self.width_multiplier}; give a multiple of 1/32, such as .5 or 2"
            )

    def build(self) -> "TinyAlexNetFeatures":
        """The freshly initialized network."""
        return TinyAlexNetFeatures(self)


class TinyAlexNetFeatures(nn.Module):
    """The network of a `TinyAlexNet`: `convolutions`, then `fc6` and `fc7`."""

    width: int

    def __init__(self, choice: TinyAlexNet) -> None:
        """The network of `choice`, with torch's default initialization."""
        super().__init__()
        channels = [round(width * choice.width_multiplier) for width in _CHANNELS]
        side, blocks = choice.image_size, []
        for number, (before, after) in enumerate(zip((choice.in_channels, *channels), channels, strict=False)):
            layers = [nn.Conv2d(before, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
            if number in _POOLED:
                layers.append(nn.MaxPool2d(3, 2))
                side = (side - 1) // 2
            blocks.append(nn.Sequential(*layers))
        self.convolutions = nn.ModuleList(blocks)
        self.image_size, self.width = choice.image_size, round(_HIDDEN * choice.width_multiplier)
        self.fc6, self.fc7 = _layer(channels[-1] * side**2, self.width), _layer(self.width, self.width)

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        """The output of fc7. Raises `UserError` for images of another size."""
        if images.shape[2:] != (self.image_size, self.image_size):
            size = " x ".join(map(str, images.shape[2:]))
            raise UserError(
                f"TinyAlexNet was built for {self.image_size} pixels but got {size}: set its image_size to that of the"
                " views"
            )
        return self.fc7(self.fc6(self.maps(images)[-1].flatten(1)))

    def maps(self, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b _ _ _"]]:
        """The output of each convolution, after its BatchNorm, ReLU and (if it has one) max-pool."""
        maps, x = [], images
        for block in self.convolutions:
            x = block(x)
            maps.append(x)
        return maps


def _layer(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(before, after, bias=False), nn.BatchNorm1d(after), nn.ReLU())
