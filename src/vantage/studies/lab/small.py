"""The two-cores level: recipes on a small network, for as many images as a core sees in minutes."""

from dataclasses import replace
from typing import Any

from vantage.composition.fitting import everywhere
from vantage.encoders import Convolutions, ResNet
from vantage.memory import Queue
from vantage.schedules import CosineByStep, StepDecay
from vantage.studies.lab.entry import Arm, Cell, Gate, Measure, Untrained
from vantage.studies.lab.measuring import Accuracy
from vantage.training.run import Data, Hardware, Monitoring, Run

__all__ = ["IMAGES", "QUEUE", "base", "branch", "floors", "gate", "shortened", "with_temperature"]

IMAGES, BATCH, QUEUE = 7_500, 64, 2_048
"""Training images of a set (equally many of each class), images of a step, keys of a queue."""

_RAW, _RANDOM = "raw pixels", "random encoder"
_RATE = 0.03
"""Constant rate of a base at that batch: four times the papers' .03 per 256 images, for a run so short."""


def shortened(run: Run, epochs: int, falling: bool = False) -> Run:
    """A recipe for 32 pixels on four convolutions, for some epochs of `IMAGES` images: queues of `QUEUE` keys, a tenth
    of each class held out, SGD at a constant rate, or at one that falls to 0 on half a cosine."""
    run = run.fit(IMAGES, BATCH).rescale(BATCH, epochs)

    def smaller(part: Any) -> Any:
        if isinstance(part, ResNet):
            return Convolutions((32, 64, 128, 256), in_channels=part.in_channels)
        return Queue(QUEUE) if isinstance(part, Queue) else part

    return replace(
        run,
        encoders=everywhere(run.encoders, smaller),
        branches=everywhere(run.branches, smaller),
        learning_rate=CosineByStep(_RATE) if falling else StepDecay(_RATE, milestones=()),
        data=Data(hold_out=0.1, max_images=IMAGES),
        hardware=Hardware(),
        monitoring=Monitoring(checkpoint_minutes=2.0),
    )


def with_temperature(run: Run, temperature: float) -> Run:
    """The run with another τ in every estimator."""
    branches = tuple(replace(b, estimator=replace(b.estimator, temperature=temperature)) for b in run.branches)  # pyright: ignore
    return replace(run, branches=branches)


def base(run: Run, epochs: int = 4, images: str = "tiny-imagenet-50") -> Arm:
    """A warm base: from scratch, at a constant rate."""
    return Arm(shortened(run, epochs), images)


def branch(run: Run, start: Arm, epochs: int = 1) -> Arm:
    """What a base becomes under another recipe: as long for each, the rate falling to 0."""
    return Arm(shortened(run, epochs, falling=True), start.images, start)


def floors(arm: Arm, *more: Measure) -> tuple[Cell, Cell]:
    """Raw pixels and a random encoder as an arm sees them; of the encoder more may be asked than its accuracy."""
    raw, random = Untrained(arm, pixels=True), Untrained(arm)
    return Cell(_RAW, raw, (Accuracy(),)), Cell(_RANDOM, random, (Accuracy(), *more))


def gate(base: str) -> Gate:
    """A base that has learned something: above both floors by a linear classifier."""
    return Gate(base, (_RAW, _RANDOM), "linear-cached")
