"""The numbers of an entry as a file that goes into the repository: values by cell, measure and seed, and how they came
about."""

import json
from pathlib import Path
from typing import Any

from vantage.errors import UserError
from vantage.storage.files import write_json
from vantage.storage.provenance import hardware
from vantage.studies.lab.entry import Entry
from vantage.studies.lab.making import Maker, arms_of, composition
from vantage.studies.lab.ruling import Numbers
from vantage.studies.lab.store import digest

__all__ = ["FOLDER", "collect", "numbers_in", "read_results", "write_collected"]

FOLDER = Path("benchmarks/results/claims")
"""Where the repository keeps them."""


def collect(maker: Maker, entry: Entry, seeds: tuple[int, ...], level: str = "two-cores") -> dict[str, Any] | None:
    """What is done of an entry so far, also while others work on it; none where nothing is."""
    values: dict[str, dict[str, dict[str, float]]] = {}
    seconds: dict[str, float] = {}
    computers: list[Any] = []
    for piece in maker.pieces(entry, seeds):
        kept = maker.lab.result(maker.about(piece))
        if kept is None:
            continue
        cell = values.setdefault(piece.cell.name, {})
        for name, value in kept["numbers"].items():
            cell.setdefault(name, {})[str(piece.seed)] = float(f"{value:.6g}")
        seconds[digest(kept["about"])] = kept["seconds"]
        for arm in arms_of(piece.cell.made):
            key = maker.run_key(arm, piece.seed)
            seconds[key] = kept.get("trained", {}).get(key) or maker.lab.seconds(key) or 0.0
        made_on = kept.get("made_on") or {"hardware": hardware(), "versions": kept["versions"]}  # of earlier versions
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
    """A file for each entry of which something is done; returns those that are new or changed. A file that holds the
    same numbers stays as it is."""
    written = []
    for entry in entries:
        record, path = collect(maker, entry, seeds, level), folder / f"{entry.name}.json"
        if record is not None and (not path.exists() or read_results(path)["cells"] != record["cells"]):
            write_json(path, record)
            written.append(path)
    return written


def read_results(path: Path) -> dict[str, Any]:
    """A results file. Raises `UserError` where it is none."""
    try:
        record = json.loads(path.read_text())
        if isinstance(record, dict) and isinstance(record["cells"], dict):
            return record
    except (OSError, ValueError, KeyError) as problem:
        raise UserError(f"{path} holds no results of the lab: {problem}") from problem
    raise UserError(f"{path} holds no results of the lab")


def numbers_in(folder: Path, entry: Entry) -> Numbers:
    """What a folder of results has on an entry: cells that are made otherwise by now do not count."""
    path = folder / f"{entry.name}.json"
    if not path.exists():
        return {}
    cells = read_results(path)["cells"]
    names = {cell.name for cell in entry.made}
    return {
        name: {measure: {int(seed): v for seed, v in row.items()} for measure, row in cell["measures"].items()}
        for name, cell in cells.items()
        if name in names and cell["made"] == _key(entry, name)
    }


def _key(entry: Entry, cell: str) -> str:
    return digest(composition(entry.cell(cell).made))
