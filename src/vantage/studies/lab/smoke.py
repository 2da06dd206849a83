"""The smoke level: the cells of an entry with the same parts, on patches of photographs, for a few steps."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from vantage.composition.fitting import everywhere
from vantage.encoders import Convolutions
from vantage.evaluate import LowShotChosen
from vantage.memory import Queue
from vantage.studies.lab.entry import Arm, Cell, Entry, Measure, Untrained, with_runs
from vantage.training.run import Data, Hardware, Run
from vantage.views.patches import Patches

__all__ = ["smoke"]

_FEW = {
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
}
"""What fields of measures and toys are lowered to."""

_SIDE = 32
"""Side of a patch of a photograph, in pixels."""


def smoke(entry: Entry) -> Entry:
    """The entry, small enough for a test: it shows that every cell can be made and every claim be judged, and nothing
    about any of them."""
    return replace(entry, cells=tuple(_cell(cell) for cell in entry.cells))


def _cell(cell: Cell) -> Cell:
    measures: tuple[Measure, ...] = tuple(lowered(measure) for measure in cell.measures)
    return replace(cell, made=_made(cell.made), measures=measures)


def _made(made: Any) -> Any:
    match made:
        case Arm() | Untrained():
            return with_runs(made, _smaller)
        case None:
            return None
    return lowered(made)


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


def lowered(value: Any) -> Any:
    """A measure or toy with fewer of everything."""
    if isinstance(value, tuple):
        return tuple(lowered(one) for one in value)
    if isinstance(value, LowShotChosen):
        return replace(value, shots=(1, 2), samples=1, negatives=2, costs=(1.0,))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    held = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    changed = {name: min(number, _FEW[name]) for name, number in held.items() if name in _FEW}
    parts = {name: lowered(held[name]) for name in ("protocol", "protocols") if name in held}
    return replace(value, **changed, **parts)
