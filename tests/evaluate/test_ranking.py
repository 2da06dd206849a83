"""On real photographs a network that has learned the classes ranks above a random one, whatever judges it."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import tiny_run, work
from torch import nn

from vantage.data import Subset, labels_of, open_source
from vantage.evaluate import KNN, SVM, EvaluationProtocol, FineTune, LinearCached, LowShot, LowShotChosen
from vantage.evaluate.tuning import Course, tune
from vantage.trained import Trained, random_encoder


class Small(nn.Sequential):
    """Three convolutions, which show their maps."""

    def __init__(self) -> None:
        layers: list[nn.Module] = []
        for before, after in ((3, 32), (32, 64), (64, 128)):
            layers += [nn.Conv2d(before, after, 3, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.width = 128

    def maps(self, images: torch.Tensor) -> list[torch.Tensor]:
        found = []
        for number, layer in enumerate(list(self)[:9], 1):
            images = layer(images)
            if number % 3 == 0:
                found.append(images)
        return found


PROTOCOLS: list[EvaluationProtocol] = [
    KNN(20, 0.1),
    LinearCached((1e-3, 1e-2)),
    SVM(costs=(0.1, 1.0, 10.0)),
    LowShot((1, 4, 16), samples=2, negatives=9, costs=(0.1, 1.0, 10.0)),
    LowShotChosen((1, 4, 16), samples=2, negatives=9, costs=(0.1, 1.0, 10.0)),
    FineTune(fraction=0.1, epochs=10, batch=25, head_rate=0.1),
]


@pytest.mark.slow
def test_learned_is_above_random(shared_data: Path, tmp_path: Path) -> None:
    photographs = open_source(f"{shared_data / 'cifar10-jpg.tar.gz'}#train", cache=tmp_path / "opened")
    order = torch.randperm(len(photographs), generator=torch.Generator().manual_seed(0))
    seen, train, test = (Subset(photographs, part) for part in order[:4500].split([3000, 1000, 500]))
    torch.manual_seed(0)
    random = replace(random_encoder(tiny_run()), backbone=Small().eval().requires_grad_(False), choice=None)
    learned = _supervised(random, seen, tmp_path)
    for protocol in PROTOCOLS:
        low, high = (protocol(each, train, test, work(tmp_path, 250)).measures for each in (random, learned))
        headline = next(iter(low))
        assert high[headline] > low[headline] + 3, (protocol, low, high)


def _supervised(random: Trained, seen: Subset, tmp_path: Path) -> Trained:
    course = Course(6, 60, (0.1, 0.1), 5e-4, 0.4, 0)
    tuned = tune(course, random, seen, labels_of(seen), 10, work(tmp_path, 250))
    return replace(random, backbone=tuned.backbone, name="supervised")
