"""A network small enough to compare methods on a CPU: four convolutions."""

from dataclasses import dataclass

from torch import Tensor, nn

__all__ = ["FourLayers", "FourLayersNetwork"]


@dataclass(frozen=True)
class FourLayers:
    """Convolutions of 3 × 3, each of half the resolution of the one before, with BatchNorm and ReLU; then the mean."""

    widths: tuple[int, ...] = (32, 64, 128, 256)
    """Channels of each."""

    def build(self) -> nn.Module:
        """Images (b, 3, h, w) to features (b, last width)."""
        layers, before = [], 3
        for width in self.widths:
            layers += [nn.Conv2d(before, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            before = width
        network = FourLayersNetwork(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        setattr(network, "width", before)  # noqa: B010
        return network


class FourLayersNetwork(nn.Sequential):
    """The network, which shows the maps between its layers."""

    def maps(self, images: Tensor) -> list[Tensor]:
        """What comes out of each convolution, after BatchNorm and ReLU."""
        found, x = [], images
        for layer in self:
            x = layer(x)
            if isinstance(layer, nn.ReLU):
                found.append(x)
        return found
