"""How long a comparison will take on this machine, measured on these images before it starts."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import torch

from vantage.data.sources.source import spread
from vantage.data.sources.subset import SourceSubset
from vantage.data.splits import LabeledSplit
from vantage.encoding import Work, encode_all
from vantage.errors import UserError
from vantage.evaluate.protocols.finetune.tuning import TuningSchedule, tune
from vantage.evaluate.protocols.linear.logistic import fit_logistic
from vantage.frozen.encoder import FrozenEncoder
from vantage.progress import QuietProgress
from vantage.storage.files import temporary_folder
from vantage.studies.benefit.plan import BenefitPlan, Budget
from vantage.studies.benefit.ways import Way

__all__ = ["Job", "UnitTimes", "estimate_seconds", "fit_budget", "measure_unit_times"]

_TRAINING_SECONDS = 2.0  # length of the training that measures the speed
_ENCODING_IMAGES = 128  # images with which encoding is timed
_PASSES = 40  # typical number of passes until a linear classifier has converged
_LEAST, _MOST = 5, 200  # limits of the number of epochs chosen to fit the minutes


@dataclass(frozen=True)
class UnitTimes:
    """Seconds for each unit of work."""

    train: float
    """Training on one image once."""

    encode: float
    """Decoding and encoding one image."""

    fit: float
    """One pass of a linear classifier over one image, for each feature."""

    start: float
    """Start of a training, before its first step."""


@dataclass(frozen=True)
class Job:
    """One classifier to be trained."""

    way: Way
    """The way in which it is made."""

    seed: int
    """Seed of its subset."""

    share: float
    """Share of the labels."""

    images: int
    """Number of images in its subset."""

    chooses: bool
    """Whether images can be held out of the subset."""

    def seconds(self, times: UnitTimes, budget: Budget, width: int, test: int) -> float:
        """Expected time in seconds, without that for computing the features."""
        values = budget.learning_rates if self.way.trains else budget.penalties
        trials = len(values) if self.chooses and len(values) > 1 else 0
        if not self.way.trains:
            return times.fit * width * _PASSES * self.images * (1 + trials)
        views = budget.epochs_of(self.images) * self.images * (1 + 0.8 * trials)
        return times.train * views + times.encode * (test + self.images * (1 + trials)) + times.start * (1 + trials)


def measure_unit_times(encoder: FrozenEncoder, images: LabeledSplit, budget: Budget, work: Work) -> UnitTimes:
    """Measure the unit times of a network by training it on some images for a few seconds; nothing is stored."""
    work, source = replace(work, progress=QuietProgress()), images.train
    rows = torch.tensor(list(spread(len(source), 2 * budget.batch_size)))
    part = SourceSubset(source, rows)

    def train(epochs: int) -> float:
        schedule = TuningSchedule(epochs, budget.batch_size, (1e-3, 1e-3), 0.0, 0.08, 0)
        with temporary_folder() as folder:
            start = time.monotonic()
            tune(schedule, encoder, part, images.label[rows], images.classes, replace(work, cache=folder))
            return time.monotonic() - start

    first, more = train(1), 1
    while (whole := train(1 + more)) < _TRAINING_SECONDS and more < 1000:
        more = max(2 * more, round(more * _TRAINING_SECONDS / max(whole, 0.1)))
    step = max(whole - first, whole / (1 + more) / 2) / more / len(rows)
    images_to_encode = SourceSubset(source, spread(len(source), _ENCODING_IMAGES))
    start = time.monotonic()
    encode_all(encoder.backbone, encoder.view, images_to_encode, work, encoder.name)
    encode = (time.monotonic() - start) / len(images_to_encode)
    return UnitTimes(
        step, encode, _fit(encoder.width, images.classes, work), max(0.0, whole - (1 + more) * len(rows) * step)
    )


def _fit(width: int, classes: int, work: Work) -> float:
    """Seconds of one pass of a linear classifier for each image and feature."""
    images, passes = 1024, 5
    vector = torch.randn(images, width, generator=torch.Generator().manual_seed(0)).to(work.resolved_device())
    label = torch.arange(images, device=vector.device) % classes
    start = time.monotonic()
    float(fit_logistic(vector, label, classes, 1e-2, passes).bias.sum())  # waits for the device
    return (time.monotonic() - start) / (images * passes * width)


def estimate_seconds(
    jobs: Iterable[Job], unit_times: Mapping[str, UnitTimes], budget: Budget, train: int, test: int
) -> dict[Job, float]:
    """Seconds for each job; the first job that needs the features of a network is charged for them. The keys of
    `unit_times` are hashes of weights; "" stands for the run's network, whatever its weights."""
    keys: set[tuple[str, str, int]] = set()
    seconds: dict[Job, float] = {}
    for job in jobs:
        times = unit_times[job.way.digest]
        key = (job.way.name, job.way.digest, job.seed if job.way.per_seed else 0)
        first = not job.way.trains and key not in keys
        keys.add(key)
        width = 1 if job.way.trains else job.way.encoder(job.seed).width
        seconds[job] = job.seconds(times, budget, width, test) + first * times.encode * (train + test)
    return seconds


def fit_budget(
    plan: BenefitPlan, jobs: list[Job], unit_times: Mapping[str, UnitTimes], train: int, test: int, seconds: float
) -> Budget:
    """The budget with as many epochs as fit into the given seconds, at most 200. Raises `UserError` if fewer than 5
    would fit."""

    def total(epochs: int) -> float:
        return sum(estimate_seconds(jobs, unit_times, replace(plan.budget, epochs=epochs), train, test).values())

    if (least := total(_LEAST)) > seconds:
        raise UserError(
            f"the minutes do not suffice: even with {_LEAST} epochs, the {len(jobs)} classifiers still to be trained "
            f"take about {least / 60:,.1f} minutes; give more minutes, or fewer seeds or shares"
        )
    low, high = _LEAST, _MOST
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if total(middle) <= seconds else (low, middle - 1)
    return replace(plan.budget, epochs=low)
