"""Work through entries, seed by seed, in one process or several, beside others that do the same."""

import multiprocessing
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import torch

from vantage.encoders import Convolutions, Momentum, PerView
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.planning.words import duration
from vantage.progress import Progress, QuietProgress
from vantage.studies.lab.entry import Arm, Entry
from vantage.studies.lab.making import Maker, Piece, arms_of
from vantage.studies.lab.sets import Sets
from vantage.studies.lab.store import Lab
from vantage.training.run import Run

__all__ = ["Expected", "Order", "expected", "make_all", "missing", "passes", "time_of"]

_WAIT = 2.0
"""Seconds until a process looks again for work that another one holds."""
_QUIET = 2_500.0
"""Forward passes a second, views included, on one quiet core of 2.5 GHz."""
_JUDGING = 20_000
"""Forward passes that measuring a cell costs, about: features of a small set and a classifier."""


@dataclass(frozen=True)
class Order:
    """What to work through."""

    entries: tuple[Entry, ...]
    """In order of worth."""

    seeds: tuple[int, ...]
    """Every cell is made once with each."""

    lab: Path
    """Folder where everything is kept."""

    data: tuple[tuple[str, str], ...] = ()
    """Name and path of each image set."""

    smoke: bool = False
    """Whether patches of photographs stand for every set."""

    device: str = "auto"
    """What computes."""

    def maker(self, progress: Progress | None = None) -> Maker:
        """Opens the sets. Raises `UserError` for a device that is not available."""
        work = Work(device=self.device, cache=self.lab / "cache")
        work.resolved_device()
        return Maker(Lab(self.lab), Sets(dict(self.data), self.smoke), work, progress)


@dataclass(frozen=True)
class Expected:
    """What is still to be done."""

    pieces: int
    """Measures of cells."""

    runs: int
    """Trainings."""

    views: int
    """Training images, each counted once a step, however many copies are made of it."""

    seconds: float
    """About what it takes on one core."""

    def words(self, jobs: int = 1) -> str:
        """In a line."""
        return (
            f"{self.runs} trainings of {self.views:,} images in all and {self.pieces} measurements: about"
            f" {duration(self.seconds / jobs)} with {jobs} process{'es' * (jobs > 1)}"
        )


def missing(maker: Maker, entries: Iterable[Entry], seeds: tuple[int, ...]) -> list[Piece]:
    """What is not done yet, in the order in which it will be."""
    return [piece for entry in entries for piece in maker.pieces(entry, seeds) if maker.numbers(piece) is None]


def passes(run: Run) -> float:
    """Forward passes that a training image costs, a backward pass counted as two: IR 3, MoCo 4, JCL 3 + M′."""
    queries = {branch.query for branch in run.branches}
    views = queries | {view for branch in run.branches for view in (*branch.keys, *branch.pooled)}
    slow = len(views - queries) if isinstance(run.encoders, Momentum) else 0
    return 3.0 * (len(views) - slow) * (len(views) if isinstance(run.encoders, PerView) else 1) + slow


def expected(maker: Maker, pieces: Sequence[Piece], speed: float | None = None) -> Expected:
    """What pieces cost: trainings that are not done yet by their forward passes at `speed` a second (without: measured
    now, in about a second), and about as much for every measure as a small set's features."""
    runs: dict[str, tuple[Arm, int]] = {}
    for piece in pieces:
        for arm in arms_of(piece.cell.made):
            key = maker.run_key(arm, piece.seed)
            if not maker.lab.trained(key):
                runs[key] = (arm, len(maker.split(arm).train))
    views = {key: arm.run.epochs * (images - images % arm.run.batch_size) for key, (arm, images) in runs.items()}
    speed = speed or (measured_speed() if runs or pieces else 1.0)
    work = sum(views[key] * passes(arm.run) for key, (arm, _) in runs.items())
    return Expected(len(pieces), len(runs), sum(views.values()), (work + _JUDGING * len(pieces)) / speed)


def time_of(entry: Entry) -> str:
    """About what one seed takes on a quiet core, without what other entries share."""
    arms = dict.fromkeys(arm for cell in entry.made for arm in arms_of(cell.made))
    work = sum(arm.run.epochs * arm.run.data.max_images * passes(arm.run) for arm in arms)
    judging = _JUDGING * sum(len(cell.measures) or 1 for cell in entry.made)
    return duration((work + judging) / _QUIET) if entry.made else "–"


def measured_speed(seconds: float = 1.0) -> float:
    """Forward passes of a 32-pixel image a second through four convolutions, in training, on this machine as it is
    loaded now."""
    network = Convolutions().build().train()
    images = torch.randn(128, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds or not count:
        with torch.autocast("cpu", torch.bfloat16):
            network(images).sum().backward()
        count += 1
    return 3 * 128 * count / (time.perf_counter() - start)


def make_all(order: Order, jobs: int = 1, report: Callable[[str], None] = lambda line: None) -> bool:
    """Make everything that is missing; returns whether all of it is there, which it is not where a signal ended it.

    Several processes, here or started elsewhere on the same folder, share the work: what one holds the others pass
    over, and look for again at the end.
    """
    if jobs == 1:
        return _work(order, report)
    context = multiprocessing.get_context("spawn")
    problems = context.SimpleQueue()
    workers = [context.Process(target=_alone, args=(order, problems)) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if not problems.empty():
        raise problems.get()
    maker = order.maker()
    return not missing(maker, order.entries, order.seeds)


def _alone(order: Order, problems: "SimpleQueue[UserError]") -> None:
    torch.set_num_threads(1)
    try:
        _work(order, lambda line: print(line, flush=True))
    except UserError as problem:
        problems.put(UserError(str(problem)))


def _work(order: Order, report: Callable[[str], None]) -> bool:
    maker = order.maker(QuietProgress())
    todo = missing(maker, order.entries, order.seeds)
    while todo:
        held = []
        for piece in todo:
            start = time.perf_counter()
            done = maker.make(piece)
            if done is False:
                return False
            if done is None:
                held.append(piece)
            elif time.perf_counter() - start > 0.01:
                report(_line(piece, maker, time.perf_counter() - start))
        if len(held) == len(todo):
            time.sleep(_WAIT)
        todo = held
    return True


def _line(piece: Piece, maker: Maker, seconds: float) -> str:
    numbers = maker.numbers(piece) or {}
    some = ", ".join(f"{name} {value:.4g}" for name, value in list(numbers.items())[:3])
    return f"{piece.cell.name}, seed {piece.seed}: {some} ({seconds:.0f} s)"
