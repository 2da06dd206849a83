"""A network trained on labels for seconds ranks above a random one, by protocols that read a frozen encoder."""

import copy
import io
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import Float
from PIL import Image
from tiny import cpu_work, tiny_run
from torch import Tensor, nn

from vantage.data.sources.arrays import Arrays
from vantage.encoders import Encoder, Momentum, PerView
from vantage.encoders.heads import LinearHead
from vantage.encoders.normalization.choices import SplitBatchNorm
from vantage.evaluate import LinearCMC, LinearMulti, LinearPlaces, LinearRing, Retrieval
from vantage.frozen.encoder import FrozenEncoder, random_encoder
from vantage.recipes import cmc
from vantage.training.run import Run


@dataclass(frozen=True)
class SmallBackbone:
    """Three convolutions that show their maps."""

    in_channels: int = 3

    def build(self) -> nn.Module:
        return Small(self.in_channels)


class Small(nn.Module):
    width: int = 64

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        sizes = [in_channels, 16, 32, 64]
        stages = [
            nn.Sequential(nn.Conv2d(low, high, 3, 2, 1, bias=False), nn.BatchNorm2d(high), nn.ReLU())
            for low, high in zip(sizes, sizes[1:], strict=False)
        ]
        self.stages = nn.ModuleList(stages)

    def maps(self, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b _ _ _"]]:
        maps = []
        for stage in self.stages:
            images = stage(images)
            maps.append(images)
        return maps

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b 64"]:
        return self.maps(images)[-1].mean((2, 3))


def one() -> Run:
    return tiny_run(Momentum(Encoder(SmallBackbone(), LinearHead(8), SplitBatchNorm(2))))


def two() -> Run:
    encoders = (Encoder(SmallBackbone(1), LinearHead(8)), Encoder(SmallBackbone(2), LinearHead(8)))
    return replace(cmc(32), encoders=PerView(encoders))


@pytest.fixture(scope="module")
def cifar(shared_data: Path) -> tuple[Arrays, Arrays]:
    """4,000 photographs of ten classes: 3,000 to train on, 1,000 to test."""
    arrays = np.load(shared_data / "cifar10-lossless-4k.npz")
    mosaic = np.asarray(Image.open(io.BytesIO(arrays["webp"].tobytes())).convert("RGB"))
    tiles = mosaic.reshape(63, 32, 64, 32, 3).swapaxes(1, 2).reshape(-1, 32, 32, 3)[:4000]
    label = arrays["y"].astype(np.int64)
    return Arrays(tiles[:3000], label[:3000], "train"), Arrays(tiles[3000:], label[3000:], "test")


def supervised(start: FrozenEncoder, source: Arrays, epochs: int = 5) -> FrozenEncoder:
    """The encoder after some epochs of cross-entropy with the labels, flips for augmentation."""
    torch.manual_seed(0)
    backbone = copy.deepcopy(start.backbone).train().requires_grad_(True)
    network = nn.Sequential(backbone, nn.Linear(start.width, 10))
    optimizer = torch.optim.AdamW(network.parameters(), 3e-3)
    pixels = torch.stack([source.image(number) for number in range(len(source))])
    label = torch.tensor([source.label(number) for number in range(len(source))])
    for _ in range(epochs):
        for rows in torch.randperm(len(source)).split(100):
            views = start.view.finish(pixels[rows])
            views = torch.where(torch.rand(len(rows), 1, 1, 1) < 0.5, views.flip(3), views)
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(views), label[rows]).backward()
            optimizer.step()
    return replace(start, backbone=backbone.eval().requires_grad_(False), name="supervised")


@pytest.fixture(scope="module")
def encoders(cifar: tuple[Arrays, Arrays]) -> dict[str, tuple[FrozenEncoder, FrozenEncoder]]:
    """The random and the trained encoder of both runs."""
    random = {run.recipe: random_encoder(run) for run in (one(), two())}
    return {name: (start, supervised(start, cifar[0])) for name, start in random.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "protocol"),
    [
        (one(), LinearRing(epochs=4, batch_size=100)),
        (one(), LinearMulti(epochs=4, batch_size=100)),
        (one(), LinearPlaces(epochs=4, batch_size=100)),
        (one(), Retrieval(10)),
        (two(), LinearCMC(epochs=4, batch_size=100)),
        (two(), LinearRing(epochs=4, batch_size=100)),
        (two(), Retrieval(10)),
    ],
    ids=lambda value: getattr(value, "name", None) or value.recipe,
)
def test_a_supervised_network_ranks_above_a_random_one(
    run: Run,
    protocol,
    cifar: tuple[Arrays, Arrays],
    encoders: dict[str, tuple[FrozenEncoder, FrozenEncoder]],
    tmp_path: Path,
) -> None:
    lower, higher = (
        protocol(encoder, *cifar, cpu_work(tmp_path, batch=250)).measures for encoder in encoders[run.recipe]
    )
    first = next(iter(lower))
    assert lower[first] > 10  # a random network is above chance
    assert higher[first] > lower[first] + 3, (lower, higher)
