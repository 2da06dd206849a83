"""The papers' schedules of detector training, in steps of 16 images, and the same for other batch sizes."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from vantage.errors import UserError
from vantage.evaluate.protocols.detection.sizes import COCO_SIZES, VOC_SIZES

__all__ = ["SCHEDULES", "DetectionSchedule", "ScheduleName"]

ScheduleName = Literal["1x", "2x", "6x", "voc"]
"""A schedule of `SCHEDULES`: COCO's 90, 180 and 540 thousand steps, or VOC's 24 thousand on smaller images."""


@dataclass(frozen=True)
class DetectionSchedule:
    """Steps, and the learning rate over them: a linear warm-up, then constant, then a tenth at each drop."""

    steps: int
    """Number of steps."""
    falls: tuple[int, ...]
    """Steps after which the learning rate drops to a tenth."""
    warm_up: int
    """Steps of linear warm-up from a thousandth of the learning rate."""
    batch: int = 16
    """Images of a step."""
    rate: float = 0.02
    """Learning rate after the warm-up."""
    short_sides: tuple[int, ...] = COCO_SIZES.short_sides
    """Shorter sides of the training images, in pixels."""

    def __post_init__(self) -> None:
        if min(self.steps, self.batch) < 1 or not 0 < self.rate < math.inf or self.warm_up < 0:
            raise UserError(
                f"detection: steps are {self.steps}, batch {self.batch}, rate {self.rate}, warm_up {self.warm_up};"
                " give at least 1 step and image, a rate above 0, and a warm-up of 0 or more steps"
            )

    def for_batch(self, batch: int) -> "DetectionSchedule":
        """The same number of images and amount of learning at another batch size: steps are divided and the learning
        rate is multiplied by batch / 16 (Goyal et al., arXiv 1706.02677). The steps of warm-up stay, as there."""
        if batch < 1:
            raise UserError(f"detection: batch is {batch}; give at least 1")
        share = self.batch / batch
        falls = tuple(max(1, round(fall * share)) for fall in self.falls)
        return replace(self, steps=max(1, round(self.steps * share)), falls=falls, batch=batch, rate=self.rate / share)

    def in_steps(self, steps: int) -> "DetectionSchedule":
        """The same schedule in another number of steps: drops at the same shares; the warm-up takes at most a tenth."""
        falls = tuple(max(1, round(fall * steps / self.steps)) for fall in self.falls)
        return replace(self, steps=steps, falls=falls, warm_up=min(self.warm_up, steps // 10))

    def rate_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        warmth = min(1.0, step / self.warm_up) if self.warm_up else 1.0
        return self.rate * (1e-3 + (1 - 1e-3) * warmth) * 0.1 ** sum(step >= fall for fall in self.falls)


SCHEDULES: dict[ScheduleName, DetectionSchedule] = {
    "1x": DetectionSchedule(90_000, (60_000, 80_000), 1000),
    "2x": DetectionSchedule(180_000, (120_000, 160_000), 1000),
    "6x": DetectionSchedule(540_000, (480_000, 520_000), 1000),
    "voc": DetectionSchedule(24_000, (18_000, 22_000), 100, short_sides=VOC_SIZES.short_sides),
}
"""Schedules by name: of COCO, as in Detectron2 (6x: its releases drop 60,000 and 20,000 steps before the end), and of
PASCAL VOC (MoCo, arXiv 1911.05722, §4.2.1; InterCLR, arXiv 2008.11702, appendix)."""
