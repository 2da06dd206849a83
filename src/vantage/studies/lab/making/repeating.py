"""What a results file says about how to repeat its numbers: the commands, and what each cell's network has seen."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from vantage.studies.lab.contracts import OfOtherSets, OnSets
from vantage.studies.lab.entry import Arm, Cell, Entry
from vantage.studies.lab.making.maker import arm_chain, arm_of

__all__ = ["commands_of", "image_sets", "images_seen", "with_commands"]


def with_commands(entry: Entry, record: Mapping[str, Any]) -> dict[str, Any]:
    """A file's content with `commands`, which make its numbers again, and for each trained cell `images` (training
    images over all steps, those of its base included) and `views` (augmentations made of them)."""
    cells = {name: {**cell, **_seen(entry.cell(name))} for name, cell in record["cells"].items()}
    return {**record, "commands": commands_of(entry, record["level"], record["cells"]), "cells": cells}


def images_seen(arm: Arm) -> int:
    """Training images over all steps, each counted once per epoch, without those of the arms that it continues."""
    run = arm.run
    return run.epochs * (run.data.max_images // run.batch_size) * run.batch_size


def commands_of(entry: Entry, level: str, cells: Mapping[str, Any]) -> list[str]:
    """The commands that make the numbers of these cells of a file: one for each range of seeds."""
    seeds = sorted({int(seed) for cell in cells.values() for row in cell["measures"].values() for seed in row})
    at = "" if level == "two-cores" else f" --level {level}"
    data = "" if level == "smoke" else "".join(f" --data {name}=PATH" for name in image_sets(entry.runnable_cells))
    return [f"vantage reproduce {entry.name}{at} --seeds {first}..{last}{data}" for first, last in _without_gaps(seeds)]


def image_sets(cells: Iterable[Cell]) -> tuple[str, ...]:
    """The names of the image sets that cells need."""
    names: dict[str, None] = {}
    for cell in cells:
        own = arm_of(cell.experiment)
        names |= dict.fromkeys([own.images] if isinstance(own, Arm) else own.sets if isinstance(own, OnSets) else [])
        names |= dict.fromkeys(name for one in cell.measures if isinstance(one, OfOtherSets) for name in one.others)
    return tuple(names)


def _without_gaps(seeds: list[int]) -> list[tuple[int, int]]:
    """The first and the last of each run of successive seeds."""
    groups = (list(group) for _, group in groupby(enumerate(seeds), lambda pair: pair[1] - pair[0]))
    return [(group[0][1], group[-1][1]) for group in groups]


def _seen(cell: Cell) -> dict[str, int]:
    """Images and views that the network of a cell was trained on; empty for other experiments, and at the smoke level,
    whose runs do not say how many images there are."""
    arms = [arm for arm in arm_chain(cell.experiment) if arm.run.data.max_images]
    images = [images_seen(arm) for arm in arms]
    views = sum(count * arm.run.views.count for count, arm in zip(images, arms, strict=True))
    return {"images": sum(images), "views": views} if arms else {}
