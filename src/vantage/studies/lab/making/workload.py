"""Run entries seed by seed, in one process or several, possibly alongside other processes that do the same."""

import multiprocessing
import signal
import time
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import torch

from vantage.durations import duration
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.progress import Progress, QuietProgress
from vantage.studies.lab.entry import Entry
from vantage.studies.lab.making.cost import Remaining
from vantage.studies.lab.making.maker import Maker, Piece
from vantage.studies.lab.making.results import complete_seeds
from vantage.studies.lab.making.store import LabFolder
from vantage.studies.lab.sets import ImageSets

__all__ = [
    "WorkOrder",
    "make_all",
    "missing_pieces",
]

_WAIT = 2.0
"""Seconds until a process tries again the work that another process has locked."""


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

    cells: tuple[str, ...] = ()
    """Names of the cells to run; if empty, all cells of the entries."""

    def maker(self, progress: Progress | None = None) -> Maker:
        """A maker for this order, with its image sets. Raises `UserError` if the device is not available, or if the lab
        is not safe to open."""
        work = Work(device=self.device, cache=self.lab / "cache")
        work.resolved_device()
        lab = LabFolder(self.lab)
        lab.check()
        return Maker(lab, ImageSets(dict(self.data), self.smoke), work, progress)


def missing_pieces(
    maker: Maker,
    entries: Iterable[Entry],
    seeds: tuple[int, ...],
    results: Path | None = None,
    cells: Container[str] = (),
) -> list[Piece]:
    """The pieces that are not done in the lab, in the order in which they will be done; with `cells`, of the cells with
    these names only. A seed for which the folder `results` holds all cells of an entry is not run again."""
    todo: list[Piece] = []
    for entry in entries:
        complete = complete_seeds(results, entry) if results else set[int]()
        pieces = maker.pieces(entry, tuple(seed for seed in seeds if seed not in complete))
        asked = (piece for piece in pieces if not cells or piece.cell.name in cells)
        todo += [piece for piece in asked if maker.numbers(piece) is None]
    return todo


def make_all(order: WorkOrder, jobs: int = 1, report: Callable[[str], None] = lambda line: None) -> bool:
    """Run every missing piece; returns whether all of them are done, which is False if a signal stopped the work.

    Several processes, started here or elsewhere on the same folder, share the work: each skips what another has locked,
    and tries it again at the end. If a process started here fails, its error is raised when all of them have ended.
    """
    if jobs == 1:
        return _work_through(order, report, 1)
    context = multiprocessing.get_context("spawn")
    problems = context.SimpleQueue()
    workers = [context.Process(target=_worker, args=(order, problems, jobs)) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    try:
        for worker in workers:
            worker.join()
    except BaseException:  # a signal may have reached this process alone; the others save their runs and end
        for worker in workers:
            worker.terminate()
        raise
    if not problems.empty():
        raise problems.get()
    _check_exits([worker.exitcode or 0 for worker in workers])
    maker = order.maker()
    return not missing_pieces(maker, order.entries, order.seeds, order.results, order.cells)


def _worker(order: WorkOrder, problems: "SimpleQueue[UserError | OSError]", jobs: int) -> None:
    torch.set_num_threads(1)
    try:
        _work_through(order, lambda line: print(line, flush=True), jobs)
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


def _work_through(order: WorkOrder, report: Callable[[str], None], jobs: int) -> bool:
    maker = order.maker(QuietProgress())
    pieces = missing_pieces(maker, order.entries, order.seeds, order.results, order.cells)
    remaining = Remaining(maker, pieces, jobs)
    todo = list(zip(pieces, remaining.costs, strict=True))
    first = multiprocessing.parent_process()
    while todo:
        locked_pieces = []
        for piece, cost in todo:
            if first is not None and not first.is_alive():  # it was killed, so nobody waits for this work
                return False
            if maker.numbers(piece) is not None:  # another process has made it since the list was written
                remaining.end(cost, mine=False)
                continue
            start = time.perf_counter()
            outcome = maker.make(piece)
            if outcome is False:
                return False
            if outcome is None:
                locked_pieces.append((piece, cost))
            else:
                remaining.end(cost)
                report(_progress_line(piece, maker, time.perf_counter() - start, remaining.seconds()))
        if len(locked_pieces) == len(todo):
            time.sleep(_WAIT)
        todo = locked_pieces
    return True


def _progress_line(piece: Piece, maker: Maker, seconds: float, left: float | None) -> str:
    numbers = maker.numbers(piece) or {}
    some = ", ".join(f"{name} {value:.4g}" for name, value in list(numbers.items())[:3])
    more = f"; about {duration(left)} left" if left else ""
    return f"{piece.cell.name}, seed {piece.seed}: {some} ({seconds:.0f} s){more}"
