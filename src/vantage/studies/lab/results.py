"""The numbers of an entry as a file for the repository: values by cell, measure and seed, and how they were made."""

import json
from collections.abc import Mapping
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any

from vantage.errors import UserError
from vantage.storage.files import write_json
from vantage.storage.provenance import hardware
from vantage.studies.lab.entry import Cell, Entry
from vantage.studies.lab.maker import Maker, arm_chain, composition
from vantage.studies.lab.store import digest
from vantage.studies.lab.verdicts import Numbers

__all__ = ["FOLDER", "collect", "complete_cells", "numbers_in", "read_results", "write_collected"]

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

    A cell counts for a seed when all of its measures are done. Cells of an `earlier` file stay, unless their definition
    has changed since; the lab's numbers replace its numbers for the same seed.
    """
    record = _carried_over(entry, level, earlier)
    cells, computers = record["cells"], record["made_on"]
    old_seconds: dict[str, float] = {}
    new_seconds: dict[str, float] = {}
    for seed, cell in product(seeds, entry.runnable_cells):
        pieces = maker.pieces_of(cell, seed)
        results = [result for piece in pieces if (result := maker.lab.result(maker.dependencies(piece)))]
        if len(results) < len(pieces):
            continue
        measures = cells.setdefault(cell.name, {"made": _key(entry, cell.name), "measures": {}})["measures"]
        is_new = not any(str(seed) in row for row in measures.values())
        for result in results:
            for name, value in result["numbers"].items():
                measures.setdefault(name, {})[str(seed)] = float(f"{value:.6g}")
            (new_seconds if is_new else old_seconds).update(_seconds(maker, cell, seed, result))
            made_on = _made_on(result)
            computers += [made_on] if is_new and made_on not in computers else []
    record["seconds"] += round(sum(time for key, time in new_seconds.items() if key not in old_seconds))
    return record if cells else None


def _carried_over(entry: Entry, level: str, earlier: Mapping[str, Any] | None) -> dict[str, Any]:
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


def _made_on(result: Mapping[str, Any]) -> Any:
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
    try:
        record = json.loads(path.read_text())
        if isinstance(record, dict) and isinstance(record["cells"], dict):
            return record
    except (OSError, ValueError, KeyError) as problem:
        raise UserError(f"{path} holds no results of the lab: {problem}") from problem
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


def complete_cells(folder: Path, entry: Entry) -> set[tuple[str, int]]:
    """The cells of an entry that a folder of results holds, each with its seed."""
    return {
        (name, seed)
        for name, measures in numbers_in(folder, entry).items()
        for seed in set.intersection(*(set(row) for row in measures.values()))
    }
