"""How long it will take on this machine, measured on these images before it begins."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from vantage.data.sources.source import SourceSubset, spread
from vantage.encoding import Work, encode_all
from vantage.errors import UserError
from vantage.evaluate.protocols.finetune.tuning import TuningSchedule, tune
from vantage.evaluate.protocols.linear.logistic import fit_logistic
from vantage.frozen.encoder import FrozenEncoder
from vantage.progress import QuietProgress
from vantage.studies.benefit.plan import Benefit, Budget
from vantage.studies.benefit.ways import Labeled, Way

__all__ = ["Job", "Pace", "expected", "fitted", "measured"]

_SECONDS = 2.0  # of training by which the speed is measured
_ENCODED = 128  # images by which encoding is measured
_PASSES = 40  # of a linear classifier over its images until it is fitted, as a rule
_LEAST, _MOST = 5, 200  # epochs that minutes may lead to


@dataclass(frozen=True)
class Pace:
    """Seconds that the parts of the work take."""

    train: float
    """Training on one image, once."""

    encode: float
    """Decoding and encoding one image."""

    fit: float
    """One pass of a linear classifier over one image, for each feature."""

    start: float
    """What a training takes before its first step."""


@dataclass(frozen=True)
class Job:
    """One classifier that is still to be made."""

    way: Way
    """How."""

    seed: int
    """Seed of its subset."""

    share: float
    """Share of the labels."""

    images: int
    """Images of its subset."""

    chooses: bool
    """Whether images can be held out of it."""

    def seconds(self, pace: Pace, budget: Budget, width: int, test: int) -> float:
        """Expected time, where features are at hand."""
        values = budget.learning_rates if self.way.trains else budget.penalties
        trials = len(values) if self.chooses and len(values) > 1 else 0
        if not self.way.trains:
            return pace.fit * width * _PASSES * self.images * (1 + trials)
        seen = budget.epochs_of(self.images) * self.images * (1 + 0.8 * trials)
        return pace.train * seen + pace.encode * (test + self.images * (1 + trials)) + pace.start * (1 + trials)


def measured(encoder: FrozenEncoder, images: Labeled, budget: Budget, work: Work) -> Pace:
    """The pace of a network, by a training of some seconds on some images, from which nothing is kept."""
    work, source = replace(work, progress=QuietProgress()), images.train
    rows = torch.tensor(list(spread(len(source), 2 * budget.batch_size)))
    part = SourceSubset(source, rows)

    def train(epochs: int) -> float:
        schedule = TuningSchedule(epochs, budget.batch_size, (1e-3, 1e-3), 0.0, 0.08, 0)
        with TemporaryDirectory() as folder:
            began = time.monotonic()
            tune(schedule, encoder, part, images.label[rows], images.classes, replace(work, cache=Path(folder)))
            return time.monotonic() - began

    first, more = train(1), 1
    while (whole := train(1 + more)) < _SECONDS and more < 1000:
        more = max(2 * more, round(more * _SECONDS / max(whole, 0.1)))
    step = max(whole - first, whole / (1 + more) / 2) / more / len(rows)
    encoded = SourceSubset(source, spread(len(source), _ENCODED))
    began = time.monotonic()
    encode_all(encoder.backbone, encoder.view, encoded, work, encoder.name)
    encode = (time.monotonic() - began) / len(encoded)
    return Pace(
        step, encode, _fit(encoder.width, images.classes, work), max(0.0, whole - (1 + more) * len(rows) * step)
    )


def _fit(width: int, classes: int, work: Work) -> float:
    """Seconds of one pass of a linear classifier for each image and feature."""
    images, passes = 1024, 5
    vector = torch.randn(images, width, generator=torch.Generator().manual_seed(0)).to(work.resolved_device())
    label = torch.arange(images, device=vector.device) % classes
    began = time.monotonic()
    float(fit_logistic(vector, label, classes, 1e-2, passes).bias.sum())  # waits for the device
    return (time.monotonic() - began) / (images * passes * width)


def expected(jobs: Iterable[Job], paces: Mapping[str, Pace], budget: Budget, train: int, test: int) -> dict[Job, float]:
    """Seconds of each job; the first that needs the features of a network is charged with them. `paces` are by the
    hash of weights, "" for those of the run's network, whatever its weights."""
    encoded: set[tuple[str, str, int]] = set()
    seconds: dict[Job, float] = {}
    for job in jobs:
        pace = paces[job.way.digest]
        key = (job.way.name, job.way.digest, job.seed if job.way.seeded else 0)
        first = not job.way.trains and key not in encoded
        encoded.add(key)
        width = 1 if job.way.trains else job.way.encoder(job.seed).width
        seconds[job] = job.seconds(pace, budget, width, test) + first * pace.encode * (train + test)
    return seconds


def fitted(plan: Benefit, jobs: list[Job], paces: Mapping[str, Pace], train: int, test: int, seconds: float) -> Budget:
    """The budget with as many epochs as fit into the seconds, at most 200. Raises `UserError` where fewer than 5
    would."""

    def total(epochs: int) -> float:
        return sum(expected(jobs, paces, replace(plan.budget, epochs=epochs), train, test).values())

    if (least := total(_LEAST)) > seconds:
        raise UserError(
            f"the minutes do not suffice: with {_LEAST} epochs {len(jobs)} classifiers take about"
            f" {least / 60:,.1f} more; give more minutes, or fewer seeds or shares"
        )
    low, high = _LEAST, _MOST
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if total(middle) <= seconds else (low, middle - 1)
    return replace(plan.budget, epochs=low)
