"""A machine of a known speed, and images of any number and size, for tests of plans."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from vantage.composition.fitting import parts_of
from vantage.data import Arrays, Source
from vantage.encoders import Convolutions, Encoder, ResNet, ResNet9
from vantage.planning.speed import Speed
from vantage.training.run import Run
from vantage.views import Augmentation, Views

COST = {Convolutions: 1.0, ResNet9: 1.5, ResNet: 40.0}


@dataclass(frozen=True)
class Pace:
    """A machine of a known speed."""

    images: float = 1_000.0
    """Images a second of the cheapest network at 32 px."""

    start: float = 1.0
    epoch: float = 0.1

    def __call__(self, run: Run, source: Source, seconds: float = 2.0) -> Speed:
        cost = 0.0
        for encoder in parts_of(run.encoders):
            if isinstance(encoder, Encoder):
                backbone: Any = encoder.backbone
                wide = (getattr(backbone, "width", 16) / 16) ** 1.5
                cost += COST[type(backbone)] * wide * getattr(backbone, "depth", 18) / 18
        sides = [run.views.evaluation(0).size] * run.views.count
        if isinstance(run.views, Views):  # small views cost less
            sides = [one.crop.size for one in run.views.views if isinstance(one, Augmentation)]
        pairs = sum((side / 32) ** 2 for side in sides) / 2
        return Speed(run.batch_size * cost * pairs / self.images, self.epoch, self.start)


def noise(count: int, side: int = 32, labels: bool = False, width: int | None = None) -> Arrays:
    pixels = np.random.default_rng(0).integers(0, 255, (count, side, width or side, 3), dtype=np.uint8)
    return Arrays(pixels, np.arange(count) % 5 if labels else None, "noise")


class Mixed:
    """Photographs of many sizes, without labels."""

    classes: tuple[str, ...] = ()

    def __init__(self, count: int = 40, least: int = 50, most: int = 300) -> None:
        self.sides = np.linspace(least, most, count).astype(int).tolist()

    def __len__(self) -> int:
        return len(self.sides)

    def image(self, number: int) -> torch.Tensor:
        side = self.sides[number]
        generator = torch.Generator().manual_seed(number)
        return torch.randint(0, 256, (3, side, side + number), dtype=torch.uint8, generator=generator)

    def label(self, number: int) -> None:
        return None

    def name(self, number: int) -> str:
        return str(number)

    def fingerprint(self) -> str:
        return f"mixed-{self.sides}"


SMALL, LARGE = noise(2_000), noise(20_000, 8)
