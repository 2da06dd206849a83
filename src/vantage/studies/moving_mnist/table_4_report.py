"""Table 4 of InfoMin as a report: our errors beside the paper's, row by row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from vantage.errors import UserError
from vantage.storage.tables import Mean, Table, csv_of
from vantage.studies.moving_mnist.rows import INFORMATION

__all__ = ["PUBLISHED", "Report", "table_4_report"]

_TASKS = {"digit": "digit error (%)", "background": "background error (%)", "location": "location error (pixels)"}

PUBLISHED: Mapping[str, tuple[float, float, float]] = MappingProxyType(
    {
        "digit": (16.8, 88.6, 13.6),
        "background": (88.6, 51.7, 16.1),
        "location": (57.9, 87.6, 3.95),
        "background, digit, location": (88.8, 56.3, 16.2),
        "background, digit": (88.2, 53.9, 16.3),
        "background, location": (88.8, 53.8, 15.9),
        "digit, location": (14.5, 88.9, 13.7),
        "supervised": (3.4, 45.3, 0.93),
    }
)
"""Digit error, background error (both in percent) and location error (in pixels) of each row of the paper's table."""


@dataclass(frozen=True)
class Report:
    """The table of results."""

    title: str
    """The title of the table."""

    columns: tuple[str, ...]
    """Names of the columns, starting with the column of row names."""

    rows: tuple[tuple[str, ...], ...]
    """The cells as printed."""

    numbers: tuple[Mapping[str, Any], ...]
    """The same rows as plain values: measures, deviations and the paper's values."""

    notes: tuple[str, ...]
    """Sentences below the table."""

    def markdown(self) -> str:
        """The table for documents."""
        notes = "\n".join(f"- {note}" for note in self.notes)
        return f"## {self.title}\n\n{Table(self.columns, self.rows).markdown()}\n\n{notes}\n"

    def csv(self) -> str:
        """The plain values for other programs, in CSV."""
        return csv_of(self.numbers)


def table_4_report(measures_by_row: Mapping[str, Sequence[Mapping[str, float]]], notes: tuple[str, ...]) -> Report:
    """The table and its numbers, from the measures of each row, one for each seed. Raises `UserError` if one of them
    has no error of a task."""
    for name, rows_of_seeds in measures_by_row.items():
        if lacking := _TASKS.keys() - set.intersection(*map(set, rows_of_seeds)):
            raise UserError(f"the rows kept of {name} lack {', '.join(sorted(lacking))}: name another folder")
    names = [name for words in _TASKS.values() for name in (words, "paper")]
    rows = [_row(name, measures) for name, measures in measures_by_row.items()]
    numbers = [_numbers(name, measures) for name, measures in measures_by_row.items()]
    columns = ("views share", *names, INFORMATION)
    return Report("InfoMin, Table 4: Colorful Moving MNIST", columns, tuple(rows), tuple(numbers), notes)


def _row(name: str, measures: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    cells = [name]
    for number, task in enumerate(_TASKS):
        digits = 2 if task == "location" else 1
        paper = PUBLISHED.get(name)
        cells += [Mean.of([one[task] for one in measures]).words(digits), f"{paper[number]:g}" if paper else "–"]
    information = [one[INFORMATION] for one in measures if INFORMATION in one]
    return (*cells, Mean.of(information).words(2) if information else "–")


def _numbers(name: str, measures: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    row: dict[str, Any] = {"views share": name, "seeds": len(measures)}
    for number, (task, words) in enumerate(_TASKS.items()):
        error = Mean.of([one[task] for one in measures])
        row |= {words: round(error.mean, 3), f"{words}, deviation": round(error.bar, 3)}
        row[f"{words}, paper"] = PUBLISHED[name][number] if name in PUBLISHED else None
    information = [one[INFORMATION] for one in measures if INFORMATION in one]
    shared = Mean.of(information) if information else None
    row[INFORMATION] = round(shared.mean, 4) if shared else None
    row[f"{INFORMATION}, deviation"] = round(shared.bar, 4) if shared else None
    return row
