"""The levels of the lab: on two cores; there overnight, for fifteen times as many images; and on a GPU, with a larger
network for thirty times as many."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from vantage.composition.fitting import everywhere
from vantage.encoders import Convolutions, ResNet9
from vantage.memory import Queue
from vantage.negatives import Sample
from vantage.studies.lab.entry import Arm, Cell, Entry, Untrained, with_runs
from vantage.studies.lab.two_cores import QUEUE, at_papers_rate
from vantage.training.run import Data, Hardware, Run

__all__ = ["LEVELS", "Level", "one_gpu", "overnight"]

IMAGES, BATCH, KEYS = 22_500, 256, 4_096
"""Training images, batch size, and keys in a queue or a sample."""


def overnight(entry: Entry) -> Entry:
    """The entry with three times as many images, five times as many epochs, batches of 256 at the papers' learning
    rate, and twice as many negatives. Toys are left out. At four times that rate, batches of 256 learn strong
    views late, and runs of this length need no haste."""
    return _with_each_run(entry, lambda run: at_papers_rate(_longer(run, 5)))


def one_gpu(entry: Entry) -> Entry:
    """The entry as overnight, but with ten times as many epochs, learning rates as on two cores, and a ResNet-9 of
    width 32 in place of four convolutions (or of a narrower ResNet-9)."""
    return _with_each_run(entry, lambda run: _larger(_longer(run, 10)))


def _with_each_run(entry: Entry, change: Callable[[Run], Run]) -> Entry:
    once = cache(change)  # arms share their bases

    def changed(cell: Cell) -> Cell:
        experiment = with_runs(cell.experiment, once) if isinstance(cell.experiment, Arm | Untrained) else None
        return replace(cell, experiment=experiment)

    return replace(entry, cells=tuple(changed(cell) for cell in entry.cells))


def _longer(run: Run, times: int) -> Run:
    def more_negatives(part: Any) -> Any:
        match part:
            case Queue() if part.length == QUEUE:
                return Queue(KEYS)
            case Sample() if part.count == QUEUE:
                return Sample(KEYS)
        return part

    data = Data(hold_out=run.data.hold_out, max_images=IMAGES)
    run = run.fit(IMAGES, BATCH).rescale(BATCH, times * run.epochs)
    return replace(run, branches=everywhere(run.branches, more_negatives), data=data, hardware=Hardware())


def _larger(run: Run) -> Run:
    def larger(part: Any) -> Any:
        match part:
            case Convolutions():
                return ResNet9(part.widths[0], in_channels=part.in_channels)
            case ResNet9():
                return replace(part, width=2 * part.width)
        return part

    return replace(run, encoders=everywhere(run.encoders, larger))


@dataclass(frozen=True)
class Level:
    """A scale at which entries are run and judged."""

    name: str
    """Its name on the command line."""

    words: str
    """The hardware, as a heading."""

    entry: Callable[[Entry], Entry]
    """Turns an entry into its version at this level."""

    subfolder: str = ""
    """Folder of its numbers, relative to that of the two-cores level."""

    def folder(self, results: Path) -> Path:
        """The folder of its numbers."""
        return results / self.subfolder


LEVELS = (
    Level("two-cores", "two cores", lambda entry: entry),
    Level("overnight", "overnight", overnight, "overnight"),
    Level("one-gpu", "one GPU", one_gpu, "one-gpu"),
)
"""The levels in the order of the page."""
