"""Cells in words: what the paper has, and how they are trained at a level; and where a command's runs come from."""

from collections.abc import Sequence
from typing import Any

from vantage.errors import quantity
from vantage.studies.lab.entry import Arm, Cell, Entry, Untrained
from vantage.studies.lab.making.compositions import arm_chain

__all__ = ["origins_of_runs", "paper_row", "training_in_words"]

_RUNS = "runs/"
"""Start of the folders of runs in commands at the papers' scale."""


def paper_row(cell: Cell) -> str:
    """The paper's values of a cell, each after the name of its column; empty if there are none."""
    return ", ".join(f"{column} {value:g}" for column, value in cell.paper.items())


def training_in_words(experiment: Any) -> str:
    """The recipes that a cell is trained by, with their epochs; or what it is instead of a trained network."""
    match experiment:
        case Arm():
            runs = [arm.run for arm in arm_chain(experiment)]
            return ", then ".join(f"{run.recipe} for {quantity(run.epochs, 'epoch')}" for run in runs)
        case Untrained():
            return "raw pixels" if experiment.pixels else "not trained"
        case None:
            return ""
    return f"the experiment {experiment.name}"


def origins_of_runs(entry: Entry, entries: Sequence[Entry]) -> dict[str, str]:
    """For each run that the commands of an entry use but do not train, the first entry whose commands train it."""
    own = _trained_runs(entry)
    used = [word for line in entry.commands for word in line.split() if word.startswith(_RUNS) and word not in own]
    return {
        run: other.name for run in dict.fromkeys(used) for other in reversed(entries) if run in _trained_runs(other)
    }


def _trained_runs(entry: Entry) -> set[str]:
    lines = [line.split() for line in entry.commands if line.startswith("vantage pretrain ")]
    return {words[words.index("--out") + 1] for words in lines}
