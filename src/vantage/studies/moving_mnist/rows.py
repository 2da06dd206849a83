"""The rows of a table about moving digits: networks trained in different ways, measured on the three tasks."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from vantage import draws
from vantage.storage.results import ResultsFile
from vantage.studies.moving_mnist.clips import Clips
from vantage.studies.moving_mnist.contrast import ClipContrast
from vantage.studies.moving_mnist.evaluation import LinearHeads, SupervisedTraining
from vantage.studies.moving_mnist.shared_factors import SharedFactors
from vantage.studies.moving_mnist.tasks import TASKS, BackgroundClass, DigitClass, Location

__all__ = [
    "INFORMATION",
    "Bench",
    "ContrastiveRow",
    "RowMeasures",
    "SupervisedRow",
    "TableRow",
    "UntrainedRow",
    "chance",
    "stored_measures",
]

INFORMATION = "I_NCE (nats)"
"""A measure of contrastive rows, in addition to the tasks."""

_EVALUATION_DISCOUNT = 4  # evaluating a frame costs about this much less than training on it


@dataclass(frozen=True)
class Bench:
    """Data and settings common to all rows of a table."""

    train: Clips
    """Clips of training digits on training backgrounds."""

    test: Clips
    """Clips of test digits on test backgrounds."""

    contrast: ClipContrast
    """Contrastive training."""

    supervised: SupervisedTraining
    """Training of the baseline."""

    heads: LinearHeads
    """Evaluation of frozen networks."""

    test_frames: int
    """Number of test frames, at most one per test digit; 0 means one per test digit."""

    information_clips: int
    """Number of test clips for I_NCE."""

    def evaluation_frames(self) -> int:
        """The cost of evaluating one frozen network, in training frames."""
        return ((self.heads.frames or len(self.train)) + (self.test_frames or len(self.test))) // _EVALUATION_DISCOUNT


ReportFrames = Callable[[int, str], None]
"""Called during the work with the number of this row's frames done so far, and a note."""


@runtime_checkable
class TableRow(Protocol):
    """One row of a table."""

    @property
    def name(self) -> str:
        """Name of the row."""
        ...

    def work(self, bench: Bench) -> int:
        """Approximate amount of work, in training frames."""
        ...

    def __call__(self, bench: Bench, seed: int, report: ReportFrames) -> dict[str, float]:
        """Measures by name: the error of each task, and any others."""
        ...


@dataclass(frozen=True)
class ContrastiveRow:
    """A network trained by contrast on views that share some factors, frozen, with a linear layer for each task."""

    shared: SharedFactors
    """The shared factors."""

    @property
    def name(self) -> str:
        """The names of the shared factors."""
        return self.shared.name

    def work(self, bench: Bench) -> int:
        """Training frames, plus the discounted evaluation frames."""
        course = bench.contrast.course
        return (
            course.steps(len(bench.train)) * course.batch_size * bench.train.frames_of_a_pair
            + bench.evaluation_frames()
        )

    def __call__(self, bench: Bench, seed: int, report: ReportFrames) -> dict[str, float]:
        """Train, measure I_NCE on test clips, then evaluate the tasks."""
        frames_per_step = bench.contrast.course.batch_size * bench.train.frames_of_a_pair
        network = bench.contrast.train(
            bench.train, self.shared, seed, lambda step, loss: report(step * frames_per_step, f"loss {loss:.3f}")
        )
        information = bench.contrast.information(network, bench.test, self.shared, bench.information_clips)
        measures = bench.heads.measure(
            network.frame, bench.train, bench.test, seed, _ignore_step, TASKS, bench.test_frames
        )
        return {**measures, INFORMATION: information}


@dataclass(frozen=True)
class UntrainedRow:
    """A network with its initial weights, frozen, with a linear layer for each task."""

    name: str = "nothing (random network)"
    """Name of the row."""

    def work(self, bench: Bench) -> int:
        """The discounted evaluation frames."""
        return bench.evaluation_frames()

    def __call__(self, bench: Bench, seed: int, report: ReportFrames) -> dict[str, float]:
        """Evaluate the tasks."""
        with draws.torch_seed(seed):
            network = bench.contrast.encoder.build().frame
        network.to(bench.train.digits.pixels.device)
        return bench.heads.measure(network, bench.train, bench.test, seed, _ignore_step, TASKS, bench.test_frames)


@dataclass(frozen=True)
class SupervisedRow:
    """A separate network for each task, trained end to end with labels."""

    name: str = "supervised"
    """Name of the row."""

    def work(self, bench: Bench) -> int:
        """Training frames of the three networks."""
        course = bench.supervised.course
        return len(TASKS) * course.steps(len(bench.train)) * course.batch_size

    def __call__(self, bench: Bench, seed: int, report: ReportFrames) -> dict[str, float]:
        """Train and evaluate the three networks, one after the other."""
        course, measures = bench.supervised.course, {}
        for number, task in enumerate(TASKS):
            before = number * course.steps(len(bench.train))

            def on_step(step: int, loss: float, before: int = before, name: str = task.name) -> None:
                report((before + step) * course.batch_size, f"{name}, loss {loss:.3f}")

            measures |= bench.supervised.measure(bench.train, bench.test, task, seed, on_step, bench.test_frames)
        return measures


@dataclass(frozen=True)
class RowMeasures:
    """The numbers of one row of a table with one seed."""

    row: str
    """The row's name."""

    seed: int
    """The seed."""

    measures: Mapping[str, float]
    """Numbers by name."""

    seconds: float
    """Time to measure them."""


def stored_measures(folder: Path, identity: Mapping[str, Any]) -> ResultsFile[RowMeasures]:
    """The rows that a folder holds, by key. `identity` names the table, its settings and its images; raises `UserError`
    if the folder holds rows of another one, or a damaged file."""
    return ResultsFile(folder / "rows.json", identity, "reproduction", _parse_row, asdict)


def _parse_row(row: dict[str, Any]) -> RowMeasures:
    measures = {name: float(value) for name, value in row["measures"].items()}
    return RowMeasures(str(row["row"]), int(row["seed"]), measures, float(row["seconds"]))


def chance(bench: Bench) -> dict[str, float]:
    """The errors of constant answers: the most common training class, and the center."""
    frames = min(bench.test_frames or len(bench.test), len(bench.test))
    _, factors, _ = bench.test.factors(0, torch.arange(frames), SharedFactors(digit=True))
    digit = DigitClass().answer(factors, bench.test)
    background = BackgroundClass().answer(factors, bench.test)
    middle = torch.zeros(len(factors), 2, device=digit.device)
    location = Location().errors(middle, Location().answer(factors, bench.test), bench.test)
    return {
        "digit": _wrong(digit, bench.train.digits.label),
        "background": _wrong(background, bench.train.backgrounds.label),
        "location": float(location.mean()),
    }


def _wrong(answer: Tensor, training: Tensor) -> float:
    most = Counter(training.tolist()).most_common(1)[0][0]
    return 100.0 * float((answer != most).float().mean())


def _ignore_step(step: int, loss: float) -> None:
    """Ignore the steps of heads, which train quickly."""
