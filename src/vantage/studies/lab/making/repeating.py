"""What a results file says about how to repeat its numbers: the commands, and what each cell's network has seen."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from vantage.studies.lab.contracts import OfOtherSets, OnSets
from vantage.studies.lab.entry import Arm, Cell, Entry
from vantage.studies.lab.making.compositions import arm_chain, arm_of

__all__ = ["command", "image_sets", "images_seen", "with_commands"]


def with_commands(entry: Entry, record: Mapping[str, Any]) -> dict[str, Any]:
    """A file's content with `commands`, which make its numbers again, one for each range of seeds; and for each trained
    cell `images` (training images over all steps, those of its base included) and `views` (augmentations of them)."""
    cells = {name: {**cell, **_seen(entry.cell(name))} for name, cell in record["cells"].items()}
    rows = [row for cell in record["cells"].values() for row in cell["measures"].values()]
    seeds = sorted({int(seed) for row in rows for seed in row})
    commands = [command(entry, record["level"], f" --seeds {first}..{last}") for first, last in _without_gaps(seeds)]
    return {**record, "commands": commands, "cells": cells}


def images_seen(arm: Arm, images: int | None = None) -> int:
    """Training images over all steps, each counted once per epoch, without those of the arms that it continues.
    `images` of an epoch; if omitted, as many as the run asks for."""
    run = arm.run
    return run.epochs * run.steps_per_epoch(run.data.max_images if images is None else images) * run.batch_size


def command(entry: Entry, level: str, options: str = "") -> str:
    """The command that makes an entry at a level, with these options besides the paths of its image sets."""
    data = "" if level == "smoke" else "".join(f" --data {name}=PATH" for name in image_sets(entry))
    return f"vantage reproduce {entry.name} --level {level}{data}{options}"


def image_sets(entry: Entry) -> tuple[str, ...]:
    """Names of the image sets that an entry needs at its level."""
    names: list[str] = []
    for cell in entry.runnable_cells:
        names += [arm.images for arm in arm_chain(arm_of(cell.experiment))]
        names += cell.experiment.sets if isinstance(cell.experiment, OnSets) else ()
        names += [name for measure in cell.measures if isinstance(measure, OfOtherSets) for name in measure.others]
    return tuple(dict.fromkeys(names))


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
