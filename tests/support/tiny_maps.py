"""A small backbone with feature maps at two depths, runs with one or two of them, and a plain training loop."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from tiny import tiny_run
from torch import Tensor, nn

from vantage.encoders import Encoder, Momentum, PerView
from vantage.encoders.heads import LinearHead
from vantage.encoders.normalization.choices import SplitBatchNorm
from vantage.recipes import cmc
from vantage.training.run import Run


@dataclass(frozen=True)
class MappedBackbone:
    """Two convolutions whose feature maps are accessible."""

    channels: int = 6
    in_channels: int = 3

    def build(self) -> nn.Module:
        return Mapped(self.channels, self.in_channels)


class Mapped(nn.Module):
    width: int

    def __init__(self, channels: int, in_channels: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(in_channels, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(4, channels, 3, 4, 1), nn.ReLU())
        self.width = channels

    def maps(self, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b d y x"]]:
        low = self.first(images)
        return [low, self.second(low)]

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        return self.maps(images)[-1].mean((2, 3))


def mapped_run() -> Run:
    """MoCo on 32-pixel images."""
    return tiny_run(Momentum(Encoder(MappedBackbone(), LinearHead(8), SplitBatchNorm(2))))


def two_run() -> Run:
    """CMC on 32-pixel images: one network sees lightness, the other color."""
    encoders = (Encoder(MappedBackbone(6, 1), LinearHead(8)), Encoder(MappedBackbone(5, 2), LinearHead(8)))
    return replace(cmc(32), encoders=PerView(encoders))


def plainly(
    layer: nn.Module,
    optimizer: torch.optim.Optimizer,
    rates: list[float],
    batches: Callable[[int], list[tuple[Tensor, Tensor]]],
) -> None:
    """Train a layer by cross-entropy on batches of (features, label), with one epoch for each learning rate."""
    for epoch, rate in enumerate(rates):
        optimizer.param_groups[0]["lr"] = rate
        for features, label in batches(epoch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(layer(features), label).backward()
            optimizer.step()
