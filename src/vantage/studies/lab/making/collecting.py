"""Collect the finished cells of a lab into the files that `results` reads."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from vantage.storage.cache import digest
from vantage.storage.files import write_json
from vantage.storage.provenance import hardware
from vantage.studies.lab.entry import Cell, Entry, Untrained
from vantage.studies.lab.making.compositions import arm_chain
from vantage.studies.lab.making.maker import Maker
from vantage.studies.lab.making.repeating import with_commands
from vantage.studies.lab.making.results import current_cells, key_of_cell, read_results, results_file

__all__ = ["collect", "write_collected"]


def collect(
    maker: Maker,
    entry: Entry,
    seeds: tuple[int, ...],
    level: str = "two-cores",
    earlier: Mapping[str, Any] | None = None,
) -> dict[str, Any] | None:
    """The finished cells of an entry, even while other processes work on it; None if there are none.

    A cell counts for a seed when all of its measures are done. Seeds of an `earlier` file stay, except for cells whose
    definition has changed since. The networks of one seed always come from one lab, since another processor rounds
    differently and so trains another base: this lab's replace the file's if they are at least as many. Baselines are
    not trained, and may come from either.
    """
    record = _carry_over(entry, level, earlier)
    cells, computers = record["cells"], record["made_on"]
    old_seconds: dict[str, float] = {}
    new_seconds: dict[str, float] = {}
    for seed in seeds:
        before, results = _merge(entry, cells, str(seed), _results_of(maker, entry, seed))
        for name, records in results.items():
            cells[name]["by"] = cells[name].get("by", {}) | _measured_by(records)
            is_new = _numbers(records) != before.get(name)
            for result in records:
                seconds = _seconds(maker, entry.cell(name), seed, result)
                (new_seconds if is_new else old_seconds).update(seconds)
                computer = _computer(result)
                computers += [computer] if is_new and computer not in computers else []
    _drop_empty(cells)
    record["seconds"] += round(sum(time for key, time in new_seconds.items() if key not in old_seconds))
    return with_commands(entry, record) if cells else None


def _merge(
    entry: Entry, cells: dict[str, Any], seed: str, results: dict[str, list[dict[str, Any]]]
) -> tuple[dict[str, dict[str, float]], dict[str, list[dict[str, Any]]]]:
    """Merge the lab's records of a seed, by cell, into a file's cells. Returns the numbers that the file had, and the
    records that count."""
    before = _without_seed(cells, seed)
    ours, theirs = _networks(entry, results), _networks(entry, before)
    fewer = len(ours) < len(theirs)
    stay = before.keys() if fewer else before.keys() - theirs - results.keys()
    results = {name: results[name] for name in results if name not in stay and not (fewer and name in ours)}
    _add_seed(entry, cells, seed, {name: before[name] for name in before if name in stay})
    _add_seed(entry, cells, seed, {name: _numbers(records) for name, records in results.items()})
    return before, results


def _results_of(maker: Maker, entry: Entry, seed: int) -> dict[str, list[dict[str, Any]]]:
    """The records of the cells that the lab has finished with a seed."""
    results: dict[str, list[dict[str, Any]]] = {}
    for cell in entry.runnable_cells:
        records = [maker.lab.result(maker.dependencies(piece)) for piece in maker.pieces_of(cell, seed)]
        if all(record is not None for record in records):
            results[cell.name] = [record for record in records if record is not None]
    return results


def _networks(entry: Entry, names: Iterable[str]) -> set[str]:
    """The cells among these that are no baselines."""
    return {name for name in names if not isinstance(entry.cell(name).experiment, Untrained)}


def _numbers(results: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    return {name: float(f"{value:.6g}") for result in results for name, value in result["numbers"].items()}


def _measured_by(results: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """For each number the digest of the measure that made it; nothing for experiments that measure themselves."""
    keys = ("measure", "version", "settings")
    of_measures = [(one, one["about"]) for one in results if "measure" in one["about"]]
    return {name: digest({key: about[key] for key in keys}) for one, about in of_measures for name in one["numbers"]}


def _without_seed(cells: dict[str, Any], seed: str) -> dict[str, dict[str, float]]:
    """Remove the numbers of a seed from a file's cells, and return them by cell and measure."""
    numbers: dict[str, dict[str, float]] = {}
    for name, cell in list(cells.items()):
        own = {measure: row.pop(seed) for measure, row in cell["measures"].items() if seed in row}
        if own:
            numbers[name] = own
    return numbers


def _add_seed(entry: Entry, cells: dict[str, Any], seed: str, numbers: Mapping[str, Mapping[str, float]]) -> None:
    """Add the numbers of a seed to a file's cells."""
    for name, values in numbers.items():
        measures = cells.setdefault(name, {"made": key_of_cell(entry, name), "by": {}, "measures": {}})["measures"]
        for measure, value in values.items():
            measures.setdefault(measure, {})[seed] = value


def _drop_empty(cells: dict[str, Any]) -> None:
    """Drop the rows of a file's cells that have no seed left, and cells without rows."""
    for name, cell in list(cells.items()):
        cell["measures"] = {number: row for number, row in cell["measures"].items() if row}
        cell["by"] = {number: key for number, key in cell.get("by", {}).items() if number in cell["measures"]}
        if not cell["measures"]:
            del cells[name]


def _carry_over(entry: Entry, level: str, earlier: Mapping[str, Any] | None) -> dict[str, Any]:
    """What remains valid of an earlier file: the cells whose definition is unchanged, their seconds and computers."""
    record: dict[str, Any] = {"entry": entry.name, "level": level, "cells": {}, "seconds": 0, "made_on": []}
    cells = current_cells(entry, earlier["cells"]) if earlier else {}
    if earlier and cells:
        record |= {"cells": deepcopy(cells), "seconds": earlier["seconds"], "made_on": [*earlier["made_on"]]}
    return record


def _seconds(maker: Maker, cell: Cell, seed: int, result: Mapping[str, Any]) -> dict[str, float]:
    """Seconds of a measurement and of the training runs that it needs, by key."""
    seconds = {digest(result["about"]): float(result["seconds"])}
    for arm in arm_chain(cell.experiment):
        key = maker.run_key(arm, seed)
        seconds[key] = float(result.get("trained", {}).get(key) or maker.lab.seconds(key) or 0.0)
    return seconds


def _computer(result: Mapping[str, Any]) -> Any:
    """The hardware and versions of a measurement. Records of earlier versions hold only the versions."""
    return result["made_on"] if "made_on" in result else {"hardware": hardware(), "versions": result["versions"]}


def write_collected(
    maker: Maker, entries: tuple[Entry, ...], seeds: tuple[int, ...], folder: Path, level: str = "two-cores"
) -> list[Path]:
    """Write a file for each entry that has results, merged with the numbers that it already holds (see `collect`);
    returns the files that are new or changed. A file that already holds the same numbers is not touched."""
    paths = []
    for entry in entries:
        path = results_file(folder, entry)
        earlier = read_results(path) if path.exists() else None
        record = collect(maker, entry, seeds, level, earlier)
        if record is not None and (earlier is None or earlier["cells"] != record["cells"]):
            write_json(path, record)
            paths.append(path)
    return paths
