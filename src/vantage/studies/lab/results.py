"""The numbers of an entry as a file for the repository: values by cell, measure and seed, and how they were made."""

import json
from pathlib import Path
from typing import Any

from vantage.errors import UserError
from vantage.storage.files import write_json
from vantage.storage.provenance import hardware
from vantage.studies.lab.entry import Entry
from vantage.studies.lab.maker import Maker, arm_chain, composition
from vantage.studies.lab.store import digest
from vantage.studies.lab.verdicts import Numbers

__all__ = ["FOLDER", "collect", "numbers_in", "read_results", "write_collected"]

FOLDER = Path("benchmarks/results/claims")
"""Where the repository stores these files."""


def collect(maker: Maker, entry: Entry, seeds: tuple[int, ...], level: str = "two-cores") -> dict[str, Any] | None:
    """What is done of an entry so far, even while other processes work on it; None where nothing is done."""
    values: dict[str, dict[str, dict[str, float]]] = {}
    seconds: dict[str, float] = {}
    computers: list[Any] = []
    for piece in maker.pieces(entry, seeds):
        record = maker.lab.result(maker.dependencies(piece))
        if record is None:
            continue
        cell = values.setdefault(piece.cell.name, {})
        for name, value in record["numbers"].items():
            cell.setdefault(name, {})[str(piece.seed)] = float(f"{value:.6g}")
        seconds[digest(record["about"])] = record["seconds"]
        for arm in arm_chain(piece.cell.experiment):
            key = maker.run_key(arm, piece.seed)
            seconds[key] = record.get("trained", {}).get(key) or maker.lab.seconds(key) or 0.0
        made_on = record.get("made_on") or {
            "hardware": hardware(),
            "versions": record["versions"],
        }  # of earlier versions
        computers += [made_on] if made_on not in computers else []
    if not values:
        return None
    return {
        "entry": entry.name,
        "level": level,
        "cells": {name: {"made": _key(entry, name), "measures": measures} for name, measures in values.items()},
        "seconds": round(sum(seconds.values())),
        "made_on": computers,
    }


def write_collected(
    maker: Maker, entries: tuple[Entry, ...], seeds: tuple[int, ...], folder: Path, level: str = "two-cores"
) -> list[Path]:
    """Write a file for each entry that has results; returns the files that are new or changed. A file that already
    holds the same numbers is not touched."""
    paths = []
    for entry in entries:
        record, path = collect(maker, entry, seeds, level), folder / f"{entry.name}.json"
        if record is not None and (not path.exists() or read_results(path)["cells"] != record["cells"]):
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
    names = {cell.name for cell in entry.runnable_cells}
    return {
        name: {measure: {int(seed): v for seed, v in row.items()} for measure, row in cell["measures"].items()}
        for name, cell in cells.items()
        if name in names and cell["made"] == _key(entry, name)
    }


def _key(entry: Entry, cell: str) -> str:
    return digest(composition(entry.cell(cell).experiment))
