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
    milestones: tuple[int, ...]
    """Steps after which the learning rate drops to a tenth."""
    warmup_steps: int
    """Steps of linear warm-up from a thousandth of the learning rate."""
    batch_size: int = 16
    """Images per step."""
    learning_rate: float = 0.02
    """Learning rate after the warm-up."""
    short_sides: tuple[int, ...] = COCO_SIZES.short_sides
    """Shorter sides of the training images, in pixels."""

    def __post_init__(self) -> None:
        if min(self.steps, self.batch_size) < 1 or not 0 < self.learning_rate < math.inf or self.warmup_steps < 0:
            raise UserError(
                f"detection: steps are {self.steps}, batch_size {self.batch_size}, learning_rate {self.learning_rate}"
                f" and warmup_steps {self.warmup_steps}; give at least 1 step and image, a learning rate above 0, and a"
                " warm-up of 0 or more steps"
            )

    def for_batch_size(self, batch_size: int) -> "DetectionSchedule":
        """The same number of images and amount of learning at another batch size: steps are divided and the learning
        rate is multiplied by batch_size / 16 (Goyal et al., arXiv 1706.02677). The warm-up keeps its steps."""
        if batch_size < 1:
            raise UserError(f"detection: batch_size is {batch_size}; give at least 1")
        share = self.batch_size / batch_size
        milestones = tuple(max(1, round(step * share)) for step in self.milestones)
        steps, learning_rate = max(1, round(self.steps * share)), self.learning_rate / share
        return replace(self, steps=steps, milestones=milestones, batch_size=batch_size, learning_rate=learning_rate)

    def in_steps(self, steps: int) -> "DetectionSchedule":
        """The same schedule in another number of steps: drops at the same shares; the warm-up takes at most a tenth."""
        milestones = tuple(max(1, round(step * steps / self.steps)) for step in self.milestones)
        return replace(self, steps=steps, milestones=milestones, warmup_steps=min(self.warmup_steps, steps // 10))

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        warmth = min(1.0, step / self.warmup_steps) if self.warmup_steps else 1.0
        drops = sum(step >= milestone for milestone in self.milestones)
        return self.learning_rate * (1e-3 + (1 - 1e-3) * warmth) * 0.1**drops


SCHEDULES: dict[ScheduleName, DetectionSchedule] = {
    "1x": DetectionSchedule(90_000, (60_000, 80_000), 1000),
    "2x": DetectionSchedule(180_000, (120_000, 160_000), 1000),
    "6x": DetectionSchedule(540_000, (480_000, 520_000), 1000),
    "voc": DetectionSchedule(24_000, (18_000, 22_000), 100, short_sides=VOC_SIZES.short_sides),
}
"""Schedules by name: of COCO, as in Detectron2 (6x: its releases drop 60,000 and 20,000 steps before the end), and of
PASCAL VOC (MoCo, arXiv 1911.05722, §4.2.1; InterCLR, arXiv 2008.11702, appendix)."""
