"""The numbers of an entry as a file for the repository: values by cell, number and seed, and how they were made.

A cell of a file holds `made`, a digest of its experiment; `by`, which maps each number to a digest of the measure that
made it, with all of its settings; and `measures`, the values by number and seed. Numbers whose experiment or measure
has changed since are left out. Experiments that measure themselves need no `by`: their settings are in `made`. What
`repeating` adds, commands and the images seen, is for readers.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vantage.errors import UserError
from vantage.storage.cache import digest
from vantage.storage.strangers import check_file
from vantage.studies.lab.entry import Cell, Entry
from vantage.studies.lab.making.compositions import composition, encode_measure
from vantage.studies.lab.making.store import is_number
from vantage.studies.lab.verdicts import Numbers

__all__ = [
    "PUBLISHED_RESULTS",
    "complete_seeds",
    "current_cells",
    "key_of_cell",
    "numbers_in",
    "outdated",
    "read_results",
    "results_file",
]

PUBLISHED_RESULTS = Path("benchmarks/results/claims")
"""Where the repository stores these files."""


def read_results(path: Path) -> dict[str, Any]:
    """The content of a results file. Raises `UserError` for a file that is not one."""
    check_file(path)
    try:
        record = json.loads(path.read_text())
        if _are_results(record):
            for row in _rows(record):
                row |= {seed: float(value) for seed, value in row.items()}
            return record
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as problem:
        raise UserError(f"{path} holds no results of the lab: {problem!r}") from problem
    raise UserError(f"{path} holds no results of the lab")


def _rows(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The values by seed of each number of each cell."""
    return [row for cell in record["cells"].values() for row in cell["measures"].values()]


def _are_results(record: Any) -> bool:
    """Whether this is what `collecting.collect` makes. Other data may also raise what `read_results` catches."""
    cells, rows = record["cells"].values(), _rows(record)
    seeds = [seed for row in rows for seed in row]
    return (
        isinstance(record["made_on"], list)
        and all(isinstance(cell["made"], str) and isinstance(cell.get("by", {}), dict) for cell in cells)
        and all(seed.isdecimal() and len(seed) < 20 for seed in seeds)
        and all(map(is_number, (record["seconds"], *(value for row in rows for value in row.values()))))
    )


def numbers_in(folder: Path, entry: Entry) -> Numbers:
    """The numbers of an entry in a folder of results, without those of cells or measures that have changed since."""
    return {
        name: {number: {int(seed): v for seed, v in row.items()} for number, row in cell["measures"].items()}
        for name, cell in current_cells(entry, _cells_in(folder, entry)).items()
    }


def outdated(folder: Path, entry: Entry) -> tuple[str, ...]:
    """The numbers in an entry's file that no longer count, as CELL @ NUMBER: the cell or the settings of the measure
    have changed since."""
    cells = _cells_in(folder, entry)
    current = current_cells(entry, cells)
    return tuple(
        f"{name} @ {number}"
        for name, cell in cells.items()
        for number in cell["measures"]
        if number not in current.get(name, {"measures": {}})["measures"]
    )


def complete_seeds(folder: Path, entry: Entry) -> set[int]:
    """The seeds for which a folder of results holds every measure of every cell of an entry."""
    cells = current_cells(entry, _cells_in(folder, entry))
    rows: list[set[str]] = []
    for cell in entry.runnable_cells:
        own = cells.get(cell.name, {"measures": {}})
        for key in _measure_keys(cell) or ("",):
            of_measure = [set(row) for number, row in own["measures"].items() if own["by"].get(number, key) == key]
            rows += of_measure or [set()]
    return {int(seed) for seed in set.intersection(*rows)} if rows else set()


def _cells_in(folder: Path, entry: Entry) -> Mapping[str, Any]:
    path = results_file(folder, entry)
    return read_results(path)["cells"] if path.exists() else {}


def results_file(folder: Path, entry: Entry) -> Path:
    """The file of an entry's numbers in a folder of results, which need not exist."""
    return folder / f"{entry.name}.json"


def current_cells(entry: Entry, cells: Mapping[str, Any]) -> dict[str, Any]:
    """A file's cells whose definition is unchanged, with the numbers whose measure is unchanged too. Numbers without a
    digest were collected by earlier versions; their measures count as unchanged."""
    runnable = {cell.name: cell for cell in entry.runnable_cells}
    current: dict[str, Any] = {}
    for name, cell in cells.items():
        if name in runnable and cell["made"] == key_of_cell(entry, name):
            keys, by = _measure_keys(runnable[name]), cell.get("by", {})
            rows = {n: row for n, row in cell["measures"].items() if n not in by or by[n] in keys}
            if rows:
                current[name] = {**cell, "by": {n: key for n, key in by.items() if n in rows}, "measures": rows}
    return current


def key_of_cell(entry: Entry, cell: str) -> str:
    """The digest of a cell's experiment."""
    return digest(composition(entry.cell(cell).experiment))


def _measure_keys(cell: Cell) -> tuple[str, ...]:
    """The digest of each measure of a cell, with all of its settings."""
    return tuple(digest(encode_measure(measure)) for measure in cell.measures)
