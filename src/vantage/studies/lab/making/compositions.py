"""Experiments and measures as plain data: what the keys of a lab's finished work are made of."""

from dataclasses import MISSING, asdict, fields, is_dataclass
from typing import Any

from vantage.composition.codec import encode, is_written
from vantage.composition.fitting import versions_of
from vantage.errors import UserError
from vantage.studies.lab.contracts import Measure, OfAnother, OnSets, Toy
from vantage.studies.lab.entry import Arm, Untrained

__all__ = ["arm_chain", "arm_of", "composition", "encode_measure"]

_IGNORED_FIELDS = ("data", "hardware", "monitoring", "seed")
"""Settings of a run that are not part of its identity. The fingerprint of its images is, and so are the epochs kept."""


def arm_chain(experiment: Any) -> tuple[Arm, ...]:
    """An arm preceded by the arms that it continues, starting with the first base; empty for a toy or a baseline."""
    if not isinstance(experiment, Arm):
        return ()
    return (*(arm_chain(experiment.start) if experiment.start else ()), experiment)


def arm_of(experiment: Any) -> Any:
    """The experiment itself; for a baseline, the arm that it is a baseline of."""
    return experiment.arm if isinstance(experiment, Untrained) else experiment


def composition(experiment: Any) -> dict[str, Any]:
    """A cell's experiment as plain data: the part of its key that the entry determines, without the images.

    Fields at their default and parts of version 1 are left out, so that existing cells stay valid when a part gets a
    new field; of an experiment that measures itself, only the fields that came later. If a default comes to mean
    something else, the part's `version` is raised.
    """
    match experiment:
        case Arm():
            run = {
                name: entry
                for name, entry in _non_default_fields(encode(experiment.run), experiment.run).items()
                if name not in _IGNORED_FIELDS
            }
            share = {"hold_out": experiment.run.data.hold_out, "max_images": experiment.run.data.max_images}
            start = composition(experiment.start) if experiment.start else None
            parts = {name: version for name, version in versions_of(experiment.run).items() if version > 1}
            watched = {name: getattr(experiment.run.monitoring, name) for name in ("keep_every", "knn_every")}
            watched = {name: every for name, every in watched.items() if every}
            return {"run": run, "set": experiment.images, **share, **watched, "start": start, "parts": parts}
        case Untrained():
            return {"untrained": "pixels" if experiment.pixels else "encoder", "like": composition(experiment.arm)}
        case Toy() | OnSets():
            written = {field.name for field in fields(experiment) if is_written(field, experiment)}  # pyright: ignore[reportArgumentType]
            settings = {name: value for name, value in asdict(experiment).items() if name in written}  # pyright: ignore[reportArgumentType]
            return {"toy": experiment.name, "version": getattr(experiment, "version", 1), "settings": settings}
    raise UserError(f"{experiment!r} cannot be run")


def _non_default_fields(plain: Any, value: Any) -> Any:
    """A part as plain data, without the fields that are at their default."""
    if isinstance(value, tuple):
        return [_non_default_fields(*pair) for pair in zip(plain, value, strict=True)]
    if not is_dataclass(value) or not isinstance(plain, dict):
        return plain
    usual = {f.name: f.default if f.default_factory is MISSING else f.default_factory() for f in fields(value)}
    changes = {name: entry for name, entry in plain.items() if name not in usual or getattr(value, name) != usual[name]}
    return {
        name: _non_default_fields(entry, getattr(value, name)) if name in usual else entry
        for name, entry in changes.items()
    }


def encode_measure(measure: Measure) -> dict[str, Any]:
    """A measure as plain data, each protocol by its name and version, and a measure that it applies like itself."""
    settings: dict[str, Any] = asdict(measure)  # pyright: ignore[reportArgumentType]
    if isinstance(measure, OfAnother):
        settings["measure"] = encode_measure(measure.measure)
    if "protocols" in settings:
        protocols = measure.protocols  # pyright: ignore[reportAttributeAccessIssue]
        settings["protocols"] = [[one.name, one.version, asdict(one)] for one in protocols]
    return {"measure": measure.name, "version": measure.version, "settings": settings}
