"""The two-cores level: recipes on a small network, with as many images as one core can process in minutes."""

from dataclasses import dataclass, replace
from typing import Any

from vantage.branch import Branch
from vantage.composition.fitting import everywhere
from vantage.encoders import Convolutions, Encoder, LinearHead, PerView, ResNet, ResNet9
from vantage.estimators import InfoNCE
from vantage.facts.results import BASELINES, RANDOM_ENCODER, RAW_PIXELS
from vantage.memory import InBatch, Queue
from vantage.negatives import OtherImages
from vantage.positives import OtherViews
from vantage.schedules import CosineByStep, StepDecay
from vantage.studies.lab.contracts import Measure
from vantage.studies.lab.entry import Arm, Cell, Gate, Untrained
from vantage.studies.lab.measures.vectors import ProtocolAccuracy
from vantage.training.run import Data, Hardware, Run

__all__ = [
    "BATCH",
    "IMAGES",
    "QUEUE",
    "Scale",
    "arm_at_papers_rate",
    "at_papers_rate",
    "base",
    "branch",
    "encoders_by_view",
    "floors",
    "gate",
    "half_encoders",
    "halves_in_batch",
    "on_images",
    "own_floors",
    "two_core_run",
    "with_temperature",
]

IMAGES, BATCH, QUEUE = 7_500, 64, 2_048
"""Training images of a set (equally many of each class), batch size, and keys in a queue."""

_HALF = (16, 32, 64, 128)
_PAPERS_RATE = 0.03 / 256
"""The papers' learning rate, by images of a batch."""
_RATE = 4 * _PAPERS_RATE
"""That of most runs here: four times as high, since they are short."""


@dataclass(frozen=True)
class Scale:
    """The network of an entry's runs, and how many images they see."""

    images: int = IMAGES
    """Training images, equally many of each class."""

    batch_size: int = BATCH
    """Images per step; the learning rate follows it."""

    backbone: Convolutions | ResNet9 = Convolutions((32, 64, 128, 256))
    """The network in place of the recipe's ResNet."""


_USUAL = Scale()
"""The scale of most entries."""


def two_core_run(run: Run, epochs: int, falling: bool = False, scale: Scale = _USUAL) -> Run:
    """A recipe for 32 pixels with a small network, trained on few images: queues of `QUEUE` keys, a tenth of each
    class held out, and a learning rate that is constant or, with `falling`, follows half a cosine to 0."""
    run = run.fit(scale.images, scale.batch_size).rescale(scale.batch_size, epochs)
    rate = _RATE * scale.batch_size

    def smaller(part: Any) -> Any:
        if isinstance(part, ResNet):
            return replace(scale.backbone, in_channels=part.in_channels)
        return Queue(QUEUE) if isinstance(part, Queue) else part

    return replace(
        run,
        encoders=everywhere(run.encoders, smaller),
        branches=everywhere(run.branches, smaller),
        learning_rate=CosineByStep(rate) if falling else StepDecay(rate, milestones=()),
        data=Data(hold_out=0.1, max_images=scale.images),
        hardware=Hardware(),
        monitoring=replace(run.monitoring, checkpoint_minutes=2.0),
    )


def at_papers_rate(run: Run) -> Run:
    """The run at the papers' own learning rate, with the same schedule."""
    assert isinstance(run.learning_rate, CosineByStep | StepDecay)
    return replace(run, learning_rate=replace(run.learning_rate, base=_PAPERS_RATE * run.batch_size))


def arm_at_papers_rate(arm: Arm) -> Arm:
    """The arm with its own run, not those that it continues, at the papers' learning rate."""
    return replace(arm, run=at_papers_rate(arm.run))


def halves_in_batch(run: Run) -> Run:
    """The run with an encoder of half the width for each of its two views, which have one channel and two. Negatives
    are the other images of the batch: a bank starts from random rows, and a few epochs are too short for that."""

    def across(query: int, key: int) -> Branch:
        return Branch(InBatch(), OtherViews(), (OtherImages(),), InfoNCE(0.1), query=query, keys=(key,), pool=(key,))

    return replace(run, encoders=half_encoders((1, 2)), branches=(across(0, 1), across(1, 0)))


def half_encoders(channels: tuple[int, ...]) -> PerView:
    """An encoder of half the width for each view, whose numbers of channels these are."""
    return encoders_by_view(channels, _HALF)


def encoders_by_view(channels: tuple[int, ...], widths: tuple[int, ...]) -> PerView:
    """An encoder for each view, whose numbers of channels these are, with layers of these widths."""
    return PerView(tuple(Encoder(Convolutions(widths, in_channels=n), LinearHead(128)) for n in channels))


def with_temperature(run: Run, temperature: float) -> Run:
    """The run with this τ in every estimator."""
    branches = tuple(replace(b, estimator=replace(b.estimator, temperature=temperature)) for b in run.branches)  # pyright: ignore
    return replace(run, branches=branches)


def base(run: Run, epochs: int = 4, scale: Scale = _USUAL) -> Arm:
    """A warm base: trained from scratch at a constant learning rate."""
    return Arm(two_core_run(run, epochs, scale=scale))


def branch(run: Run, start: Arm, epochs: int = 1, scale: Scale = _USUAL) -> Arm:
    """A base continued under another recipe, with a learning rate that falls to 0."""
    return Arm(two_core_run(run, epochs, falling=True, scale=scale), start.images, start)


def on_images(arm: Arm, images: str) -> Arm:
    """The arm, and all that it continues, on another set of images."""
    return replace(arm, images=images, start=on_images(arm.start, images) if arm.start else None)


def floors(arm: Arm, *more: Measure) -> tuple[Cell, Cell]:
    """Raw pixels and a random encoder for the images of an arm; the encoder may have more measures than accuracy."""
    raw, random = Untrained(arm, pixels=True), Untrained(arm)
    return Cell(RAW_PIXELS, raw, (ProtocolAccuracy(),)), Cell(RANDOM_ENCODER, random, (ProtocolAccuracy(), *more))


def own_floors(name: str, arm: Arm) -> tuple[Cell, ...]:
    """The floors of an arm that has other views or another network than the others of its entry, named after it."""
    return tuple(replace(cell, name=_own(cell.name, name)) for cell in floors(arm))


def gate(base: str, name: str = "") -> Gate:
    """The gate that a base passes if a linear classifier puts it above both floors; above its own (`own_floors`) if
    their name is given."""
    return Gate(base, tuple(_own(floor, name) for floor in BASELINES), "linear-cached")


def _own(floor: str, name: str) -> str:
    return f"{floor}, {name}" if name else floor
