"""The numbers of an entry as a file for the repository: values by cell, measure and seed, and how they were made."""

import json
import math
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from vantage.errors import UserError
from vantage.storage.cache import digest
from vantage.storage.files import write_json
from vantage.storage.provenance import hardware
from vantage.storage.strangers import check_file
from vantage.studies.lab.entry import Cell, Entry
from vantage.studies.lab.maker import Maker, arm_chain, composition
from vantage.studies.lab.verdicts import Numbers

__all__ = ["FOLDER", "collect", "complete_seeds", "numbers_in", "read_results", "write_collected"]

FOLDER = Path("benchmarks/results/claims")
"""Where the repository stores these files."""


def collect(
    maker: Maker,
    entry: Entry,
    seeds: tuple[int, ...],
    level: str = "two-cores",
    earlier: Mapping[str, Any] | None = None,
) -> dict[str, Any] | None:
    """The finished cells of an entry, even while other processes work on it; None where there are none.

    A cell counts for a seed when all of its measures are done. Seeds of an `earlier` file stay, except for cells whose
    definition has changed since. The cells of one seed always come from one lab, since another processor rounds
    otherwise and trains another base: this lab's replace the file's where it has as many of them or more.
    """
    record = _carry_over(entry, level, earlier)
    cells, computers = record["cells"], record["made_on"]
    old_seconds: dict[str, float] = {}
    new_seconds: dict[str, float] = {}
    for seed in seeds:
        results = _results_of(maker, entry, seed)
        before = _without_seed(cells, str(seed))
        if len(results) < len(before):
            _add_seed(entry, cells, str(seed), before)
            continue
        numbers = {name: _numbers(records) for name, records in results.items()}
        is_new = numbers != before
        _add_seed(entry, cells, str(seed), numbers)
        for name, records in results.items():
            for result in records:
                seconds = _seconds(maker, entry.cell(name), seed, result)
                (new_seconds if is_new else old_seconds).update(seconds)
                computer = _computer(result)
                computers += [computer] if is_new and computer not in computers else []
    record["seconds"] += round(sum(time for key, time in new_seconds.items() if key not in old_seconds))
    return record if cells else None


def _results_of(maker: Maker, entry: Entry, seed: int) -> dict[str, list[dict[str, Any]]]:
    """The records of the cells that the lab has finished with a seed."""
    results: dict[str, list[dict[str, Any]]] = {}
    for cell in entry.runnable_cells:
        records = [maker.lab.result(maker.dependencies(piece)) for piece in maker.pieces_of(cell, seed)]
        if all(record is not None for record in records):
            results[cell.name] = [record for record in records if record is not None]
    return results


def _numbers(results: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    return {name: float(f"{value:.6g}") for result in results for name, value in result["numbers"].items()}


def _without_seed(cells: dict[str, Any], seed: str) -> dict[str, dict[str, float]]:
    """Takes the numbers of a seed out of a file's cells, and returns them by cell and measure."""
    numbers: dict[str, dict[str, float]] = {}
    for name, cell in list(cells.items()):
        own = {measure: row.pop(seed) for measure, row in cell["measures"].items() if seed in row}
        if own:
            numbers[name] = own
    return numbers


def _add_seed(entry: Entry, cells: dict[str, Any], seed: str, numbers: Mapping[str, Mapping[str, float]]) -> None:
    """Adds the numbers of a seed to a file's cells, and drops cells that have no numbers left."""
    for name, values in numbers.items():
        measures = cells.setdefault(name, {"made": _key(entry, name), "measures": {}})["measures"]
        for measure, value in values.items():
            measures.setdefault(measure, {})[seed] = value
    for name in [name for name, cell in cells.items() if not any(cell["measures"].values())]:
        del cells[name]


def _carry_over(entry: Entry, level: str, earlier: Mapping[str, Any] | None) -> dict[str, Any]:
    """What an earlier file still says: its cells that are defined as they were, how long they took and where."""
    record: dict[str, Any] = {"entry": entry.name, "level": level, "cells": {}, "seconds": 0, "made_on": []}
    cells = {name: cell for name, cell in earlier["cells"].items() if _is_current(entry, name, cell)} if earlier else {}
    if earlier and cells:
        record |= {"cells": deepcopy(cells), "seconds": earlier["seconds"], "made_on": [*earlier["made_on"]]}
    return record


def _seconds(maker: Maker, cell: Cell, seed: int, result: Mapping[str, Any]) -> dict[str, float]:
    """How long a measurement and the training runs that it needs took, by key."""
    seconds = {digest(result["about"]): result["seconds"]}
    for arm in arm_chain(cell.experiment):
        key = maker.run_key(arm, seed)
        seconds[key] = result.get("trained", {}).get(key) or maker.lab.seconds(key) or 0.0
    return seconds


def _computer(result: Mapping[str, Any]) -> Any:
    """The hardware and versions of a measurement; those of earlier versions hold the versions alone."""
    return result.get("made_on") or {"hardware": hardware(), "versions": result["versions"]}


def write_collected(
    maker: Maker, entries: tuple[Entry, ...], seeds: tuple[int, ...], folder: Path, level: str = "two-cores"
) -> list[Path]:
    """Write a file for each entry that has results, beside or over the numbers that it already holds (see `collect`);
    returns the files that are new or changed. A file that already holds the same numbers is not touched."""
    paths = []
    for entry in entries:
        path = folder / f"{entry.name}.json"
        earlier = read_results(path) if path.exists() else None
        record = collect(maker, entry, seeds, level, earlier)
        if record is not None and (earlier is None or earlier["cells"] != record["cells"]):
            write_json(path, record)
            paths.append(path)
    return paths


def read_results(path: Path) -> dict[str, Any]:
    """The content of a results file. Raises `UserError` for a file that is not one."""
    check_file(path)
    try:
        record = json.loads(path.read_text())
        cells = [(cell["made"], cell["measures"]) for cell in record["cells"].values()]
        rows = [row.items() for _, measures in cells for row in measures.values()]
        seeds, numbers = ([pair[at] for row in rows for pair in row] for at in (0, 1))
        whole = all(map(str.isdecimal, seeds)) and all(map(math.isfinite, [*numbers, record["seconds"]]))
        if whole and isinstance(record["made_on"], list):
            return record
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as problem:
        raise UserError(f"{path} holds no results of the lab: {problem!r}") from problem
    raise UserError(f"{path} holds no results of the lab")


def numbers_in(folder: Path, entry: Entry) -> Numbers:
    """The numbers of an entry in a folder of results, without those of cells whose definition has changed since."""
    path = folder / f"{entry.name}.json"
    if not path.exists():
        return {}
    cells = read_results(path)["cells"]
    return {
        name: {measure: {int(seed): v for seed, v in row.items()} for measure, row in cell["measures"].items()}
        for name, cell in cells.items()
        if _is_current(entry, name, cell)
    }


def _key(entry: Entry, cell: str) -> str:
    return digest(composition(entry.cell(cell).experiment))


def _is_current(entry: Entry, name: str, cell: Mapping[str, Any]) -> bool:
    """Whether a cell of a file is still defined as it was when it was made."""
    return any(each.name == name for each in entry.runnable_cells) and cell["made"] == _key(entry, name)


def complete_seeds(folder: Path, entry: Entry) -> set[int]:
    """The seeds with which a folder of results holds every cell of an entry."""
    numbers = numbers_in(folder, entry)
    rows = [set(row) for cell in entry.runnable_cells for row in numbers.get(cell.name, {"": {}}).values()]
    return set.intersection(*rows) if rows else set()
