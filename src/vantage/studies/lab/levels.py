"""The levels of the lab: on two cores, and on a GPU with a larger network that sees thirty times as many images."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vantage.composition.fitting import everywhere
from vantage.encoders import Convolutions, ResNet9
from vantage.memory import Queue
from vantage.negatives import Sample
from vantage.studies.lab.entry import Arm, Cell, Entry, Untrained, with_runs
from vantage.studies.lab.two_cores import QUEUE
from vantage.training.run import Data, Hardware, Run

__all__ = ["LEVELS", "Level", "one_gpu"]

IMAGES, BATCH, KEYS, LONGER = 22_500, 256, 4_096, 10
"""Training images, batch size, keys in a queue or a sample, and the factor by which epochs are multiplied."""


def one_gpu(entry: Entry) -> Entry:
    """The entry with a ResNet-9 of width 32 in place of four convolutions (or of a narrower ResNet-9), three times as
    many images, ten times as many epochs, batches of 256 with learning rates to match, and twice as many negatives.
    Toys are left out."""
    return replace(entry, cells=tuple(_larger_cell(cell) for cell in entry.cells))


def _larger_cell(cell: Cell) -> Cell:
    experiment = with_runs(cell.experiment, _larger) if isinstance(cell.experiment, Arm | Untrained) else None
    return replace(cell, experiment=experiment)


def _larger(run: Run) -> Run:
    def larger(part: Any) -> Any:
        match part:
            case Convolutions():
                return ResNet9(part.widths[0], in_channels=part.in_channels)
            case ResNet9():
                return replace(part, width=2 * part.width)
            case Queue() if part.length == QUEUE:
                return Queue(KEYS)
            case Sample() if part.count == QUEUE:
                return Sample(KEYS)
        return part

    data = Data(hold_out=run.data.hold_out, max_images=IMAGES)
    run = run.fit(IMAGES, BATCH).rescale(BATCH, LONGER * run.epochs)
    parts = {name: everywhere(getattr(run, name), larger) for name in ("encoders", "branches")}
    return replace(run, **parts, data=data, hardware=Hardware())


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
    Level("one-gpu", "one GPU", one_gpu, "one-gpu"),
)
"""The levels in the order of the page."""
