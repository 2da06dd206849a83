"""Run entries seed by seed, in one process or several, possibly alongside other processes that do the same."""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

import torch

from vantage.durations import duration
from vantage.encoders import Convolutions, Momentum, PerView
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.progress import Progress, QuietProgress
from vantage.studies.lab.contracts import HasCost
from vantage.studies.lab.entry import Arm, Entry
from vantage.studies.lab.making.maker import Maker, Piece, arm_chain
from vantage.studies.lab.making.results import complete_seeds
from vantage.studies.lab.making.store import LabFolder
from vantage.studies.lab.sets import ImageSets
from vantage.training.run import Run

__all__ = [
    "Workload",
    "WorkOrder",
    "estimate_workload",
    "make_all",
    "missing_pieces",
    "forward_passes",
    "passes_per_second",
    "time_per_seed",
]

_WAIT = 2.0
"""Seconds until a process tries again the work that another process has locked."""
_QUIET_SPEED = 2_500.0
"""Forward passes per second, including views, on one otherwise idle core at 2.5 GHz."""
_JUDGING_PASSES = 20_000.0
"""Approximate cost of measuring a cell, in forward passes: features of a small set and a classifier."""
_SMOKE_RUN, _SMOKE_JUDGING, _SMOKE_OWN = 2_500.0, 1_500.0, 5_000.0
"""Approximate cost at the smoke level, in forward passes: of starting a training run; of measuring a cell; and of a
measure that says its cost, besides that cost. Images are so few that they cost less than opening files."""


@dataclass(frozen=True)
class WorkOrder:
    """Which entries to run, with which seeds and where."""

    entries: tuple[Entry, ...]
    """Entries, the most important first."""

    seeds: tuple[int, ...]
    """Seeds; every cell is run once with each."""

    lab: Path
    """Folder where everything is kept."""

    data: tuple[tuple[str, str], ...] = ()
    """Name and path of each image set."""

    smoke: bool = False
    """Whether small images stand for every set: patches of photographs, and scikit-learn's digits."""

    device: str = "auto"
    """The device to compute on."""

    results: Path | None = None
    """Folder of collected numbers (see `results.py`); seeds that are complete there are not rerun."""

    def maker(self, progress: Progress | None = None) -> Maker:
        """A maker for this order, with its image sets. Raises `UserError` if the device is not available, or if the lab
        is not safe to open."""
        work = Work(device=self.device, cache=self.lab / "cache")
        work.resolved_device()
        lab = LabFolder(self.lab)
        lab.check()
        return Maker(lab, ImageSets(dict(self.data), self.smoke), work, progress)


@dataclass(frozen=True)
class Workload:
    """The work that remains."""

    pieces: int
    """Measurements of cells."""

    runs: int
    """Training runs."""

    views: int
    """Training images over all steps, each counted once per step, however many views are made of it."""

    seconds: float
    """Approximate time on one core."""

    def words(self, jobs: int = 1) -> str:
        """The work in one line."""
        return (
            f"{self.runs} training run{'s' * (self.runs != 1)} of {self.views:,} images in all and {self.pieces}"
            f" measurement{'s' * (self.pieces != 1)}: about"
            f" {duration(self.seconds / jobs)} with {jobs} process{'es' * (jobs > 1)}"
        )


def missing_pieces(
    maker: Maker, entries: Iterable[Entry], seeds: tuple[int, ...], results: Path | None = None
) -> list[Piece]:
    """The pieces that are not done in the lab, in the order in which they will be done. A seed for which the folder
    `results` holds all cells of an entry is not run again."""
    todo: list[Piece] = []
    for entry in entries:
        complete = complete_seeds(results, entry) if results else set[int]()
        pieces = maker.pieces(entry, tuple(seed for seed in seeds if seed not in complete))
        todo += [piece for piece in pieces if maker.numbers(piece) is None]
    return todo


def forward_passes(run: Run) -> float:
    """Cost of a training image in forward passes; a backward pass counts as two. IR 3, MoCo 4, JCL 3 + M′."""
    queries = {branch.query for branch in run.branches}
    views = queries | {view for branch in run.branches for view in (*branch.keys, *branch.pool_views)}
    slow = len(views - queries) if isinstance(run.encoders, Momentum) else 0
    return 3.0 * (len(views) - slow) * (len(views) if isinstance(run.encoders, PerView) else 1) + slow


def estimate_workload(maker: Maker, pieces: Sequence[Piece], speed: float | None = None) -> Workload:
    """The cost of some pieces: the forward passes of unfinished training runs at `speed` per second (if omitted, it is
    measured now, which takes about a second), and that of every measurement: what it says itself, or a fixed amount. At
    the smoke level, each run and measurement has a cost of its own besides."""
    small = maker.sets.smoke
    runs: dict[str, tuple[Arm, int]] = {}
    for piece in pieces:
        for arm in arm_chain(piece.cell.experiment):
            key = maker.run_key(arm, piece.seed)
            if not maker.lab.is_trained(key):
                runs[key] = (arm, len(maker.split(arm).train))
    views = {key: arm.run.epochs * (images - images % arm.run.batch_size) for key, (arm, images) in runs.items()}
    speed = speed or (passes_per_second() if pieces else 1.0)
    work = sum(views[key] * forward_passes(arm.run) + small * _SMOKE_RUN for key, (arm, _) in runs.items())
    work += sum(_measuring_passes(piece.measure or piece.cell.experiment, small) for piece in pieces)
    return Workload(len(pieces), len(runs), sum(views.values()), work / speed)


def _measuring_passes(measured: Any, small: bool = False) -> float:
    """The cost of a measure, or of an experiment that measures itself, without the training of runs."""
    own = measured.passes if isinstance(measured, HasCost) else None
    if small:
        return _SMOKE_JUDGING if own is None else _SMOKE_OWN + own
    return _JUDGING_PASSES if own is None else own


def time_per_seed(entry: Entry) -> str:
    """Approximate time of one seed on an idle core, ignoring that entries share some training runs."""
    arms = dict.fromkeys(arm for cell in entry.runnable_cells for arm in arm_chain(cell.experiment))
    work = sum(arm.run.epochs * arm.run.data.max_images * forward_passes(arm.run) for arm in arms)
    judging = sum(
        _measuring_passes(one) for cell in entry.runnable_cells for one in cell.measures or (cell.experiment,)
    )
    return duration((work + judging) / _QUIET_SPEED)


def passes_per_second(seconds: float = 1.0) -> float:
    """Forward passes per second of 32-pixel images through four convolutions in training, on this machine under its
    current load."""
    network = Convolutions().build().train()
    images = torch.randn(128, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds or not count:
        with torch.autocast("cpu", torch.bfloat16):
            network(images).sum().backward()
        count += 1
    return 3 * 128 * count / (time.perf_counter() - start)


def make_all(order: WorkOrder, jobs: int = 1, report: Callable[[str], None] = lambda line: None) -> bool:
    """Run every missing piece; returns whether all of them are done, which is False if a signal stopped the work.

    Several processes, started here or elsewhere on the same folder, share the work: each skips what another has locked,
    and tries it again at the end. If a process started here fails, its error is raised when all of them have ended.
    """
    if jobs == 1:
        return _work_through(order, report)
    context = multiprocessing.get_context("spawn")
    problems = context.SimpleQueue()
    workers = [context.Process(target=_worker, args=(order, problems)) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if not problems.empty():
        raise problems.get()
    _check_exits([worker.exitcode or 0 for worker in workers])
    maker = order.maker()
    return not missing_pieces(maker, order.entries, order.seeds, order.results)


def _worker(order: WorkOrder, problems: "SimpleQueue[UserError | OSError]") -> None:
    torch.set_num_threads(1)
    try:
        _work_through(order, lambda line: print(line, flush=True))
    except UserError as problem:
        problems.put(UserError(str(problem)))  # a subclass may not survive pickling
    except OSError as problem:
        problems.put(problem)


def _check_exits(statuses: Sequence[int]) -> None:
    """Raise an error for a process that failed without putting a problem into the queue."""
    for status in statuses:
        if status < 0:
            name = signal.Signals(-status).name
            raise UserError(
                f"{name} ended a process of --jobs, which may mean that memory ran out: run the same command again,"
                " with fewer --jobs if so; finished work is kept"
            )
        if status > 0:
            raise RuntimeError("a process of --jobs failed: its own traceback is above")


def _work_through(order: WorkOrder, report: Callable[[str], None]) -> bool:
    maker = order.maker(QuietProgress())
    todo = missing_pieces(maker, order.entries, order.seeds, order.results)
    while todo:
        locked_pieces = []
        for piece in todo:
            if maker.numbers(piece) is not None:  # another process has made it since the list was written
                continue
            start = time.perf_counter()
            outcome = maker.make(piece)
            if outcome is False:
                return False
            if outcome is None:
                locked_pieces.append(piece)
            else:
                report(_progress_line(piece, maker, time.perf_counter() - start))
        if len(locked_pieces) == len(todo):
            time.sleep(_WAIT)
        todo = locked_pieces
    return True


def _progress_line(piece: Piece, maker: Maker, seconds: float) -> str:
    numbers = maker.numbers(piece) or {}
    some = ", ".join(f"{name} {value:.4g}" for name, value in list(numbers.items())[:3])
    return f"{piece.cell.name}, seed {piece.seed}: {some} ({seconds:.0f} s)"
