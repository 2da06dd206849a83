"""Invertible flows over the colors of each pixel, with which InfoMin learns views.

No code was released for this; the paper (Tian et al., arXiv 2005.10243, section 4.2 and appendix B.5) leaves depth,
width and the equations of a coupling open, so each is a setting here.

b: images   h, w: height and width in pixels   i, o: channels in and out
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage.errors import UserError

__all__ = ["Coupling", "CouplingLayer", "Flow", "FlowNetwork", "RealNVP", "TwoSided", "VolumePreserving"]


class CouplingLayer(nn.Module, ABC):
    """One invertible step: a single channel and a pair of channels, each changed as a function of the other.

    The change of volume is returned as the sum, over the pixels, of log |det| of the 3 × 3 Jacobians.
    """

    @abstractmethod
    def forward(
        self, one: Float[Tensor, "b 1 h w"], two: Float[Tensor, "b 2 h w"]
    ) -> tuple[Float[Tensor, "b 1 h w"], Float[Tensor, "b 2 h w"], Float[Tensor, "b"]]:
        """Both, transformed, and the logarithm of the volume."""

    @abstractmethod
    def inverse(
        self, one: Float[Tensor, "b 1 h w"], two: Float[Tensor, "b 2 h w"]
    ) -> tuple[Float[Tensor, "b 1 h w"], Float[Tensor, "b 2 h w"]]:
        """The arguments of `forward`, from what it returned."""


@runtime_checkable
class Coupling(Protocol):
    """The frozen choice of a coupling."""

    def build(self) -> CouplingLayer:
        """The layer, which is the identity until it is trained."""
        ...


@dataclass(frozen=True)
class _Pixelwise:
    """Size of the functions in a coupling: 1 × 1 convolutions with ReLU between them."""

    hidden: int = 32
    """Channels between the convolutions."""

    layers: int = 3
    """Convolutions."""

    def __post_init__(self) -> None:
        if self.hidden < 1 or self.layers < 2:
            raise UserError(
                f"{type(self).__name__} with {self.layers} convolutions of {self.hidden} channels: give at least 2"
                " and at least 1"
            )

    def function(self, inputs: int, outputs: int) -> nn.Module:
        """A function of each pixel, 0 everywhere until it is trained."""
        widths = [inputs, *[self.hidden] * (self.layers - 1), outputs]
        steps: list[nn.Module] = []
        for before, after in zip(widths, widths[1:], strict=False):
            steps += [nn.Conv2d(before, after, 1), nn.ReLU()]
        last = steps[-2]
        assert isinstance(last, nn.Conv2d) and last.bias is not None
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        return _PixelConvolutions(*steps[:-1])


class _PixelConvolutions(nn.Sequential):
    """1 × 1 convolutions as one matrix product over the pixels of all images: twice as fast on a CPU."""

    def forward(self, input: Float[Tensor, "b i h w"]) -> Float[Tensor, "b o h w"]:
        pixels = input.movedim(1, 0).flatten(1)
        for step in self:
            if isinstance(step, nn.Conv2d):
                assert step.bias is not None
                pixels = torch.addmm(step.bias[:, None], step.weight.flatten(1), pixels)
            else:
                pixels = pixels.relu_()
        return pixels.unflatten(1, (input.shape[0], *input.shape[2:])).movedim(0, 1)


@dataclass(frozen=True)
class VolumePreserving(_Pixelwise):
    """Y₁ = X₁, Y₂ = X₂ + F(X₁): additive coupling with one function (NICE, Dinh et al., arXiv 1410.8516)."""

    def build(self) -> "AdditiveLayer":
        """The layer."""
        return AdditiveLayer(self.function(1, 2), None)


@dataclass(frozen=True)
class TwoSided(_Pixelwise):
    """Y₁ = X₁ + F(X₂), Y₂ = X₂ + G(Y₁): both sides change, but not the volume. InfoMin's "VP", which has an F and a G
    like its "NVP" (appendix B.5); the order of the two is our reading."""

    def build(self) -> "AdditiveLayer":
        """The layer."""
        return AdditiveLayer(self.function(1, 2), self.function(2, 1))


@dataclass(frozen=True)
class RealNVP(_Pixelwise):
    """Y₁ = X₁, Y₂ = X₂ ⊙ exp(S(X₁)) + T(X₁): affine coupling (Dinh et al., arXiv 1605.08803), InfoMin's "NVP"."""

    bound: float = 0.0
    """Bound on |S|, which becomes bound · tanh(S / bound) so that values cannot diverge; 0: no bound."""

    def build(self) -> "AffineLayer":
        """The layer."""
        return AffineLayer(self.function(1, 2), self.function(1, 2), self.bound)


class AdditiveLayer(CouplingLayer):
    """The layer of `VolumePreserving`, and of `TwoSided`, which changes the single channel too."""

    def __init__(self, to_two: nn.Module, to_one: nn.Module | None) -> None:
        super().__init__()
        self.to_two, self.to_one = to_two, to_one

    def forward(self, one: Tensor, two: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Both, transformed; the volume does not change."""
        one = one if self.to_one is None else one + self.to_one(two)
        return one, two + self.to_two(one), one.new_zeros(one.shape[0])

    def inverse(self, one: Tensor, two: Tensor) -> tuple[Tensor, Tensor]:
        """The arguments of `forward`."""
        two = two - self.to_two(one)
        return (one if self.to_one is None else one - self.to_one(two)), two


class AffineLayer(CouplingLayer):
    """The layer of `RealNVP`."""

    def __init__(self, scale: nn.Module, shift: nn.Module, bound: float) -> None:
        super().__init__()
        self.scale, self.shift, self.bound = scale, shift, bound

    def _logarithm(self, one: Tensor) -> Tensor:
        raw = self.scale(one)
        return self.bound * torch.tanh(raw / self.bound) if self.bound else raw

    def forward(self, one: Tensor, two: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Both, transformed, and the logarithm of the volume."""
        logarithm = self._logarithm(one)
        return one, two * logarithm.exp() + self.shift(one), logarithm.flatten(1).sum(1)

    def inverse(self, one: Tensor, two: Tensor) -> tuple[Tensor, Tensor]:
        """The arguments of `forward`."""
        return one, (two - self.shift(one)) * (-self._logarithm(one)).exp()


@dataclass(frozen=True)
class Flow:
    """Couplings in sequence. Their single channel is the first, the second, the third, the first again, and so on."""

    coupling: Coupling = TwoSided()
    """The kind of each step."""

    couplings: int = 6
    """Number of couplings: with six, each channel is the single one twice."""

    def __post_init__(self) -> None:
        if self.couplings < 1:
            raise UserError(f"a flow of {self.couplings} couplings changes nothing: give at least 1")

    def build(self) -> "FlowNetwork":
        """The network, which is the identity until it is trained."""
        return FlowNetwork([self.coupling.build() for _ in range(self.couplings)])


class FlowNetwork(nn.Module):
    """A `Flow`: images of three channels to images of three channels, pixel by pixel, and back."""

    def __init__(self, layers: list[CouplingLayer]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, images: Float[Tensor, "b 3 h w"]) -> tuple[Float[Tensor, "b 3 h w"], Float[Tensor, "b"]]:
        """The images in the flow's colors, and the logarithm of the volume: log |det| summed over the pixels."""
        volume = images.new_zeros(images.shape[0])
        for number, layer in enumerate(self.layers):
            one, two = _take_out(images, number % 3)
            one, two, log_volume = layer(one, two)
            images, volume = _put_in(one, two, number % 3), volume + log_volume
        return images, volume

    def inverse(self, images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """The images that `forward` was given."""
        for number in reversed(range(len(self.layers))):
            layer = self.layers[number]
            assert isinstance(layer, CouplingLayer)
            one, two = _take_out(images, number % 3)
            images = _put_in(*layer.inverse(one, two), number % 3)
        return images


def _take_out(
    images: Float[Tensor, "b 3 h w"], channel: int
) -> tuple[Float[Tensor, "b 1 h w"], Float[Tensor, "b 2 h w"]]:
    """One channel, and the other two."""
    others = [n for n in range(3) if n != channel]
    return images[:, channel : channel + 1], torch.cat([images[:, n : n + 1] for n in others], 1)


def _put_in(one: Float[Tensor, "b 1 h w"], two: Float[Tensor, "b 2 h w"], channel: int) -> Float[Tensor, "b 3 h w"]:
    """The three channels in order."""
    parts = list(two.split(1, 1))
    parts.insert(channel, one)
    return torch.cat(parts, 1)
