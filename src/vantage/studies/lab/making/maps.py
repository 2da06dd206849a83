"""Maps of the augmentations of some images through the networks of some cells, as in InterCLR's Figure 7: positions by
t-SNE, in a file beside an entry's numbers.

n: images   a: augmentations of each
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from vantage.errors import UserError
from vantage.frozen.networks import trained_networks
from vantage.storage.files import write_json
from vantage.storage.provenance import hardware, versions
from vantage.storage.strangers import check_file
from vantage.studies.analyse.classes import AugmentationMap, AugmentationMaps, Classes
from vantage.studies.lab.entry import Arm, Entry
from vantage.studies.lab.making.maker import Maker
from vantage.studies.lab.making.results import key_of_cell

__all__ = ["MAPS", "map_file", "read_map", "write_map"]

MAPS = "maps"
"""Folder of the maps, in a folder of results."""

_CLASSES = Classes(classes=6, images=8, augmentations=8)
"""What is laid out: test images of a few classes."""


def map_file(folder: Path, entry: Entry) -> Path:
    """The file of an entry's map in a folder of results, which need not exist."""
    return folder / MAPS / f"{entry.name}.json"


def write_map(maker: Maker, entry: Entry, seeds: tuple[int, ...], folder: Path) -> Path | None:
    """Lay out an entry's map with the first of the seeds for which the lab has trained all of its cells, and write it
    into a folder of results. Returns the file; None if there is no such seed, or if the file has a map of these cells
    already."""
    if not entry.map_of or read_map(folder, entry) is not None:
        return None
    for seed in seeds:
        runs = {name: maker.run_key(_arm(entry, name), seed) for name in entry.map_of}
        if all(map(maker.lab.is_trained, runs.values())):
            networks = [replace(trained_networks(maker.lab.run(key)), name=name) for name, key in runs.items()]
            maps = _CLASSES(networks, maker.split(_arm(entry, entry.map_of[0])).test, maker.work)
            write_json(map_file(folder, entry), _encode(maps, entry, seed))
            return map_file(folder, entry)
    return None


def read_map(folder: Path, entry: Entry) -> AugmentationMaps | None:
    """An entry's map in a folder of results; None if there is none, or if its cells have changed since. Raises
    `UserError` for a file that holds no map."""
    path = map_file(folder, entry)
    if not path.exists():
        return None
    check_file(path)
    try:
        record = json.loads(path.read_text())
        if record["made"] != _made(entry):
            return None
        label, classes = torch.tensor(record["labels"]), tuple(map(str, record["classes"]))
        places = {name: _places(rows) for name, rows in record["places"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, RecursionError) as problem:
        raise UserError(f"{path} holds no map of the lab: {problem!r}") from problem
    finite = all(bool(place.isfinite().all()) for place in places.values())
    if label.ndim != 1 or {len(place) for place in places.values()} != {len(label)} or not finite:
        raise UserError(f"{path} holds no map of the lab")
    return AugmentationMaps(tuple(AugmentationMap(name, label, place, {}) for name, place in places.items()), classes)


def _arm(entry: Entry, cell: str) -> Arm:
    arm = entry.cell(cell).experiment
    assert isinstance(arm, Arm), f"{entry.name}: {cell} trains no network"
    return arm


def _made(entry: Entry) -> dict[str, str]:
    return {name: key_of_cell(entry, name) for name in entry.map_of}


def _encode(maps: AugmentationMaps, entry: Entry, seed: int) -> dict[str, Any]:
    """As plain data: a line for each image, with x and y of each of its augmentations."""
    places = {
        one.name: [" ".join(f"{value:.4f}" for value in row) for row in one.place.flatten(1).tolist()]
        for one in maps.maps
    }
    return {
        "entry": entry.name,
        "made": _made(entry),
        "seed": seed,
        "classes": list(maps.classes),
        "labels": maps.maps[0].label.tolist(),
        "places": places,
        "made_on": {"hardware": hardware(), "versions": versions()},
    }


def _places(rows: list[str]) -> torch.Tensor:
    """Positions n × a × 2 of the images' lines."""
    return torch.tensor([[float(word) for word in row.split()] for row in rows]).unflatten(1, (-1, 2))
