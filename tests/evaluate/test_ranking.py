"""On real photographs a network that has learned the classes ranks above a random one by every protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tiny import cpu_work, saved_run, tiny_run
from torch import nn

from vantage.data import Source, SourceSubset, labels_of, open_source
from vantage.data.resident import decode_all
from vantage.data.sources.arrays import Arrays
from vantage.data.sources.masked import MaskedImages, open_masked
from vantage.encoders import Encoder, Shared
from vantage.encoders.heads import LinearHead
from vantage.evaluate import (
    KNN,
    SVM,
    EvaluationProtocol,
    FineTune,
    FineTuneChosen,
    LinearCached,
    LinearMoCo,
    LinearPyContrast,
    LowShot,
    LowShotChosen,
    NearestNeighbor,
    Segmentation,
)
from vantage.evaluate.protocols.finetune.tuning import TuningSchedule, tune
from vantage.evaluate.transfer.sets import TransferSet
from vantage.evaluate.transfer.transfer import transfer
from vantage.frozen.encoder import FrozenEncoder, random_encoder
from vantage.training.folder import checkpoint


@dataclass(frozen=True)
class SmallBackbone:
    """Three convolutions that show their maps."""

    def build(self) -> nn.Module:
        return Small()


class Small(nn.Sequential):
    def __init__(self) -> None:
        layers: list[nn.Module] = []
        for before, after in ((3, 32), (32, 64), (64, 128)):
            layers += [nn.Conv2d(before, after, 3, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.width = 128

    def maps(self, images: torch.Tensor) -> list[torch.Tensor]:
        maps = []
        for number, layer in enumerate(list(self)[:9], 1):
            images = layer(images)
            if number % 3 == 0:
                maps.append(images)
        return maps


PROTOCOLS: list[EvaluationProtocol] = [
    KNN(20, 0.1),
    NearestNeighbor(),
    LinearMoCo((1.0, 3.0), epochs=4, batch_size=100),
    LinearPyContrast((1.0, 3.0), epochs=4, batch_size=100),
    LinearCached((1e-3, 1e-2)),
    SVM(costs=(0.1, 1.0), folds=2),  # few enough fits for one process
    LowShot((1, 4, 16), samples=1, negatives=9, costs=(0.1, 1.0)),
    LowShotChosen((1, 4, 16), samples=1, negatives=9, costs=(0.1, 1.0)),
    FineTune(fraction=0.1, epochs=10, batch_size=25, head_learning_rate=0.1),
    FineTuneChosen(fraction=0.1, epochs=10, batch_size=25, head_learning_rates=(0.1, 0.3)),
]


RUN = tiny_run(Shared(Encoder(SmallBackbone(), LinearHead(8))))


@dataclass(frozen=True)
class Networks:
    """Two encoders of one run, and photographs that neither was trained on."""

    random: FrozenEncoder
    supervised: FrozenEncoder
    train: Arrays
    test: Arrays
    folder: Path

    def by(self, protocol: EvaluationProtocol, train: Source, test: Source) -> list[Mapping[str, float]]:
        """A protocol's measures of both; features are computed once for all tests."""
        encoders = self.random, self.supervised
        return [protocol(each, train, test, cpu_work(self.folder, 250)).measures for each in encoders]


@pytest.fixture(scope="module")
def networks(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Networks:
    """3,000 photographs for training, 1,100 for testing."""
    folder = tmp_path_factory.mktemp("ranked")
    photographs = open_source(f"{shared_data / 'cifar10-jpg.tar.gz'}#train", cache=folder)
    order = torch.randperm(len(photographs), generator=torch.Generator().manual_seed(0))
    tuning, train, test = (decode(SourceSubset(photographs, part)) for part in order[:4100].split([3000, 700, 400]))
    random = random_encoder(RUN)
    tuned_copy = tune(
        TuningSchedule(5, 60, (0.1, 0.1), 5e-4, 0.4, 0), random, tuning, labels_of(tuning), 10, cpu_work(folder, 250)
    )
    return Networks(random, replace(random, backbone=tuned_copy.backbone, name="supervised"), train, test, folder)


def decode(source: SourceSubset) -> Arrays:
    """The same images without files."""
    pixels = decode_all(source).permute(0, 2, 3, 1).contiguous()
    return Arrays(pixels.numpy(), np.array(source.classes)[labels_of(source).numpy()], "photographs")


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_a_trained_network_ranks_above_a_random_one(protocol: EvaluationProtocol, networks: Networks) -> None:
    low, high = networks.by(protocol, networks.train, networks.test)
    headline = next(iter(low))
    assert high[headline] > low[headline] + 3, (low, high)


@pytest.mark.slow
def test_a_trained_network_ranks_above_a_random_one_on_pixels(networks: Networks, tmp_path: Path) -> None:
    train, test = mosaics(networks.train, tmp_path / "train", 50), mosaics(networks.test, tmp_path / "test", 30)
    low, high = networks.by(Segmentation(size=64, width=32, epochs=8, batch_size=5), train, test)
    assert high["mIoU"] > low["mIoU"] + 3 and high["mean accuracy"] > low["mean accuracy"] + 3, (low, high)


@pytest.mark.slow
def test_a_trained_network_ranks_above_a_random_one_in_a_table_of_sets(networks: Networks, tmp_path: Path) -> None:
    learner = saved_run(tmp_path / "run", RUN)
    learner.networks.encoders[0].get_submodule("backbone").load_state_dict(networks.supervised.backbone.state_dict())
    state = {f"learner.{name}": value for name, value in learner.state_dict().items()}
    checkpoint.save(tmp_path / "run", 9, state, {})
    for source, name in ((networks.train, "train"), (networks.test, "test")):
        pixels = decode_all(source).permute(0, 2, 3, 1).numpy()
        np.savez(tmp_path / f"{name}.npz", images=pixels, labels=labels_of(source).numpy())
    sets = [TransferSet("photographs", str(tmp_path / "train.npz"), str(tmp_path / "test.npz"))]
    work = cpu_work(tmp_path)
    table = transfer(tmp_path / "run", sets, KNN(10, 0.1), baselines=True, work=work)
    value = {row.encoder: row.value for row in table.rows}
    assert value["moco_v2"] > value["random encoder"] + 3, value


def mosaics(source: Arrays, folder: Path, count: int) -> MaskedImages:
    """Four photographs of 32 pixels side by side; every pixel has the class of its photograph."""
    for kind in ("images", "masks"):
        (folder / kind).mkdir(parents=True)
    order = iter(torch.randint(len(source), (4 * count,), generator=torch.Generator().manual_seed(0)).tolist())
    for number in range(count):
        tiles = [next(order) for _ in range(4)]
        rows = [torch.cat([source.image(tile) for tile in pair], 2) for pair in (tiles[:2], tiles[2:])]
        picture = torch.cat(rows, 1).permute(1, 2, 0).numpy()
        mask = np.array([source.label(tile) for tile in tiles], np.uint8).reshape(2, 2).repeat(32, 0).repeat(32, 1)
        Image.fromarray(picture).save(folder / "images" / f"{number}.png")
        Image.fromarray(mask).save(folder / "masks" / f"{number}.png")
    return open_masked(f"{folder / 'images'}#masks", source.classes)
