"""A small run with a checkpoint, and small images, for tests of what comes after training."""

from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from vantage.data.sources.arrays import Arrays
from vantage.encoders import Momentum, Role
from vantage.encoders.encoder import Encoder
from vantage.encoders.heads import LinearHead
from vantage.encoders.normalization.choices import SplitBatchNorm
from vantage.encoding import Work
from vantage.learner import Learner
from vantage.recipes import moco_v2
from vantage.training.folder import checkpoint, settings
from vantage.training.run import Run


@dataclass(frozen=True)
class TinyBackbone:
    """Two convolutions."""

    channels: int = 12
    in_channels: int = 3

    def build(self) -> nn.Module:
        return TinyFeatures(self.channels, self.in_channels)


class TinyFeatures(nn.Sequential):
    width: int

    def __init__(self, channels: int, in_channels: int = 3) -> None:
        layers = [
            ("conv1", nn.Conv2d(in_channels, 8, 3, 2, 1)),
            ("bn1", nn.BatchNorm2d(8)),
            ("relu", nn.ReLU()),
            ("conv2", nn.Conv2d(8, channels, 3, 2, 1)),
            ("pool", nn.AdaptiveAvgPool2d(1)),
            ("flat", nn.Flatten()),
        ]
        super().__init__(OrderedDict(layers))
        self.width = channels


@dataclass(frozen=True)
class TinyMaps:
    """Two convolutions whose feature maps are accessible."""

    in_channels: int = 3

    def build(self) -> nn.Module:
        return TinyMapsNetwork(self.in_channels)


class TinyMapsNetwork(nn.Module):
    width: int = 6

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(in_channels, 4, 3, 2, 1), nn.Conv2d(4, 6, 3, 2, 1)

    def maps(self, images: torch.Tensor) -> list[torch.Tensor]:
        first = self.first(images).relu()
        return [first, self.second(first).relu()]

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.maps(images)[-1].mean((2, 3))


ALLOW = ("tiny",)
"""Modules that the settings of a tiny run may import."""


def tiny_run(role: Role | None = None) -> Run:
    """MoCo on 32-pixel images with the small backbone."""
    role = role or Momentum(Encoder(TinyBackbone(), LinearHead(8), SplitBatchNorm(2)))
    return replace(moco_v2(32), encoders=role)


def saved_run(folder: Path, run: Run, seed: int = 0, images: int = 64) -> Learner:
    """Write settings and a checkpoint as training on `images` images does; every parameter and buffer of the networks
    differs from its initial value."""
    torch.manual_seed(seed)
    learner = Learner(run.encoders, run.branches, images=images, seed=0)
    with torch.no_grad():
        for tensor in (*learner.networks.parameters(), *learner.networks.buffers()):
            if tensor.is_floating_point():
                tensor.add_(0.05 * torch.rand_like(tensor))
    settings.write(run, folder)
    tensors = {f"learner.{name}": value for name, value in learner.state_dict().items()}
    checkpoint.save(folder, 7, {**tensors, "optimizer.0.momentum_buffer": torch.zeros(3)}, {})
    return learner


def images(count: int, seed: int, classes: int = 3, size: int = 32, noise: float = 60.0) -> Arrays:
    """Noisy squares whose color shows the class."""
    chance = np.random.default_rng(seed)
    label = np.arange(count) % classes
    color = np.random.default_rng(99).uniform(60, 190, (classes, 3))
    pixels = color[label][:, None, None, :] + chance.normal(0, noise, (count, size, size, 3))
    return Arrays(pixels.clip(0, 255).astype(np.uint8), label, "synthetic")


def cpu_work(folder: Path, batch: int = 16) -> Work:
    """Work on the CPU, with a separate cache for the test."""
    return Work("cpu", batch_size=batch, num_workers=2, cache=folder / "cache")
