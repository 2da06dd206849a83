"""The smoke level: an entry's cells with the same parts, trained for a few steps on patches of photographs."""

from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from vantage.composition.fitting import everywhere
from vantage.encoders import Convolutions
from vantage.evaluate import LowShotChosen
from vantage.memory import Queue
from vantage.studies.lab.contracts import Measure
from vantage.studies.lab.entry import Arm, Cell, Entry, Untrained, with_runs
from vantage.training.run import Data, Hardware, Run
from vantage.views.patches import Patches

__all__ = ["smoke"]

_UPPER_LIMITS = {
    "images": 24,
    "augmentations": 4,
    "redraws": 4,
    "epochs": 1,
    "pairs": 200,
    "held_out": 200,
    "draws": 3,
    "pool": 512,
    "iterations": 10,
    "most": 60,
    "steps": 2,
    "training_images": 80,
    "frames": 128,
    "test_frames": 64,
    "information_clips": 64,
    "mosaics": 16,
    "test_mosaics": 8,
}
"""Upper limits for the fields of measures and toys."""

_SIDE = 32
"""Side of a patch of a photograph, in pixels."""


def smoke(entry: Entry) -> Entry:
    """The entry, small enough for a test, which shows that every cell can be run and every claim judged. The numbers
    say nothing about whether the claims hold."""
    return replace(entry, cells=tuple(_shrink_cell(cell) for cell in entry.cells))


def _shrink_cell(cell: Cell) -> Cell:
    measures: tuple[Measure, ...] = tuple(shrink(measure) for measure in cell.measures)
    return replace(cell, experiment=_shrink_experiment(cell.experiment), measures=measures)


def _shrink_experiment(experiment: Any) -> Any:
    match experiment:
        case Arm() | Untrained():
            return with_runs(experiment, _smaller)
        case None:
            return None
    return shrink(experiment)


@cache  # arms share their bases
def _smaller(run: Run) -> Run:
    def smaller(part: Any) -> Any:
        match part:
            case Convolutions():
                return Convolutions((8, 16), in_channels=part.in_channels)
            case Queue():
                return Queue(32)
            case Patches():
                return replace(part, distance=min(part.distance, _SIDE - part.size))
        return part

    data, hardware = Data(hold_out=run.data.hold_out), Hardware("cpu", precision="32-true")
    run = run.fit(80, 16).rescale(16, 1)
    parts = {name: everywhere(getattr(run, name), smaller) for name in ("views", "encoders", "branches")}
    return replace(run, **parts, data=data, hardware=hardware)


def shrink(value: Any) -> Any:
    """The measure or toy with smaller numbers throughout."""
    if isinstance(value, tuple):
        return tuple(shrink(one) for one in value)
    if isinstance(value, LowShotChosen):
        return replace(value, shots=(1, 2), samples=1, negatives=2, costs=(1.0,))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    values = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    limits = {name: min(number, _UPPER_LIMITS[name]) for name, number in values.items() if name in _UPPER_LIMITS}
    parts = {name: shrink(values[name]) for name in ("protocol", "protocols", "measure") if name in values}
    return replace(value, **limits, **parts)
