"""View learning with networks of one hidden layer on images of four pixels."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vantage.encoders import Encoder, LinearHead
from vantage.studies.view_learning import LabeledBatch, LabelInformation, Players, SharedInformation, ViewLearning
from vantage.views import Augmentation, Flow, HorizontalFlip, RandomResizedCrop, RealNVP

CLASSES = 3


@dataclass(frozen=True)
class Perceptron:
    """Pixels through one hidden layer, if any: no BatchNorm, so that images do not meet."""

    inputs: int
    hidden: int = 5

    def build(self) -> nn.Module:
        network = nn.Sequential(nn.Flatten(), nn.Linear(self.inputs, self.hidden), nn.Tanh())
        setattr(network, "width", self.hidden)  # noqa: B010
        return network


def critics(pixels: int = 4, hidden: int = 5, width: int = 6) -> SharedInformation:
    one, two = (Encoder(Perceptron(pixels * channels, hidden), LinearHead(width)) for channels in (1, 2))
    return SharedInformation((one, two))


def classifiers(pixels: int = 4) -> LabelInformation:
    return LabelInformation((Perceptron(pixels), Perceptron(2 * pixels)))


def learning(*terms, **fields) -> ViewLearning:
    crop = Augmentation(RandomResizedCrop(2, (0.2, 1.0)), (HorizontalFlip(0.5),))
    return ViewLearning("toy", terms, crop, flow=Flow(RealNVP(4, 2), 3), **fields)


def off_the_start(players: Players) -> Players:
    """Every parameter off its start, in double precision."""
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in players.double().parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return players


def channels(count: int = 6, seed: int = 1) -> Tensor:
    return torch.randn(count, 3, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def labeled(count: int = 5) -> LabeledBatch:
    return LabeledBatch(channels(count, 2), torch.arange(count) % CLASSES)
