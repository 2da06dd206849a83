"""A sweep over any fields of a run, named by their paths."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from vantage.composition.assignments import read_assignments, split_values
from vantage.errors import UserError
from vantage.planning.sizing import override
from vantage.studies.sweep.sweeps import SweepPoint
from vantage.training.run import Run

__all__ = ["Field", "Fields", "parse_fields"]

_NEVER_VARY = ("recipe", "seed", "data", "hardware", "monitoring")


@dataclass(frozen=True)
class Field:
    """Any field of a run: a number or a part. A path names fields and positions in tuples. It may be the end of a
    longer path, and then sets every field whose path ends with it: `crop.scale.0` is the first number of the scale of
    every crop, in all views. What is counted in epochs follows `epochs`, and the learning rate `batch_size`
    (`Run.rescale`)."""

    name: ClassVar[str] = "field"
    recipe: ClassVar[str] = "moco_v2"

    path: str
    """Dotted path of the field, or its end."""

    values: tuple[str, ...]
    """Values as a recipe prints them: numbers, words, (tuples), or parts such as Ring()."""

    @property
    def axis(self) -> str:
        """The path."""
        return self.path

    def points(self, base: Run) -> tuple[SweepPoint, ...]:
        """A run for each value."""
        _check(self.path, self.values)
        return _points((self.path,), base, [(text,) for text in self.values])


@dataclass(frozen=True)
class Fields:
    """Several fields that vary together. A point has a value of each, so the points may also be a grid."""

    name: ClassVar[str] = "field"
    recipe: ClassVar[str] = "moco_v2"

    paths: tuple[str, ...]
    """Dotted paths of the fields, or their ends."""

    values: tuple[tuple[str, ...], ...]
    """The values of each point, one for each path."""

    @property
    def axis(self) -> str:
        """The paths."""
        return ", ".join(self.paths)

    def points(self, base: Run) -> tuple[SweepPoint, ...]:
        """A run for each point."""
        _check(self.axis, self.values)
        return _points(self.paths, base, self.values)


def parse_fields(*words: str, grid: bool = False) -> Field | Fields:
    """The sweep that one or more words `PATH=VALUE,VALUE,…` describe; several fields vary together, value by value, or
    as a grid: every combination of their values, in which the last field varies fastest.

    Commas within brackets do not separate values. Raises `UserError` if a path or its values are missing, if fields
    that are no grid have different numbers of values, or if a grid has only one field.
    """
    fields = [(path.strip(), split_values(text)) for path, _, text in (word.partition("=") for word in words)]
    for word, (path, values) in zip(words, fields, strict=True):
        if not path or not values:
            raise UserError(
                f"{word!r} names no field and values: write PATH=VALUE,VALUE, such as crop.scale.0=0.1,0.2,0.4"
            )
    paths, values = zip(*fields, strict=True)
    if grid and len(fields) == 1:
        raise UserError(f"a grid combines several fields, but only {paths[0]} was given: add PATH=VALUE,VALUE")
    if len(fields) == 1:
        return Field(paths[0], values[0])
    if grid:
        for path, own in fields:
            _check(path, own)
        return Fields(paths, tuple(product(*values)))
    if len(set(map(len, values))) > 1:
        counts = ", ".join(f"{path} has {len(own)}" for path, own in fields)
        raise UserError(
            f"fields that vary together need the same number of values, but {counts}: give as many of each, or ask for"
            " every combination with --grid"
        )
    return Fields(paths, tuple(zip(*values, strict=True)))


def _check(axis: str, values: tuple[Any, ...]) -> None:
    texts = [text for value in values for text in (value if isinstance(value, tuple) else (value,))]
    if isinstance(values, str) or not all(isinstance(text, str) for text in texts):
        raise UserError(f"the values of {axis} are {values!r}: give a tuple of texts, such as ('0.1', 'Ring()')")
    if not values or len(set(values)) < len(values):
        raise UserError(f"the values of {axis} are {values}: give at least one, and each only once")


def _points(paths: tuple[str, ...], base: Run, values: Sequence[tuple[str, ...]]) -> tuple[SweepPoint, ...]:
    """A point for each of the values. Raises `UserError` for two that are the same run, such as 0.1 and 0.10."""
    points: list[SweepPoint] = []
    for texts in values:
        point = _point(paths, base, texts)
        for other in points:
            if other.run == point.run:
                raise UserError(
                    f"{', '.join(paths)}: {other.label} and {point.label} are the same run: give each value only once"
                )
        points.append(point)
    return tuple(points)


def _point(paths: tuple[str, ...], base: Run, texts: tuple[str, ...]) -> SweepPoint:
    pairs = " and ".join(f"{path} cannot be {text}" for path, text in zip(paths, texts, strict=True))
    assignments = [f"{path}={text}" for path, text in zip(paths, texts, strict=True)]
    try:
        run = override(base, read_assignments(base, assignments, _can_vary, base.recipe))
    except UserError as problem:
        raise UserError(f"{pairs}: {problem}") from problem
    return SweepPoint(", ".join(texts), run, _number(texts[0]) if len(texts) == 1 else None)


def _can_vary(path: str) -> bool:
    return path.partition(".")[0] not in _NEVER_VARY


def _number(text: str) -> float | None:
    """The position of a value along its axis, if it is a number."""
    try:
        return float(text)
    except ValueError:
        return None
