"""A sweep of any field of a run, named by its path."""

import ast
from dataclasses import dataclass
from typing import Any, ClassVar

from vantage.composition.codec import decode
from vantage.composition.fields import leaves, replaced
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError
from vantage.studies.sweep.sweeps import Point
from vantage.training.run import Run

__all__ = ["Field", "field_of"]

_NOT_THESE = ("recipe", "seed", "data.", "hardware.", "monitoring.")


@dataclass(frozen=True)
class Field:
    """Any field of a run. A path names fields and places in tuples; it may begin anywhere, and all fields that it ends
    are set alike: `crop.scale.0` is the first number of the scale of every crop, in all views."""

    name: ClassVar[str] = "field"
    recipe: ClassVar[str] = "moco_v2"

    path: str
    """Dotted path of the field, or the end of it."""

    values: tuple[str, ...]
    """Values as Python writes them: numbers, words, (tuples)."""

    @property
    def axis(self) -> str:
        """The path."""
        return self.path

    def points(self, base: Run) -> tuple[Point, ...]:
        """A run for each value."""
        if not self.values or len(set(self.values)) < len(self.values):
            raise UserError(f"{self.path} is to take the values {self.values}: give at least one, and each once")
        targets = _targets(base, self.path)
        return tuple(self._point(base, targets, text) for text in self.values)

    def _point(self, base: Run, targets: dict[str, tuple[Any, Any, int | None]], text: str) -> Point:
        changes = {}
        for path, (annotation, held, place) in targets.items():
            new = _read(text)
            if place is not None:
                new = (*held[:place], new, *held[place + 1 :])
            new = _like(held, new)
            try:
                changes[path] = decode(_listed(new), annotation, path=path)
            except UserError as problem:
                raise UserError(f"{self.path} cannot be {text}: {problem}") from problem
        try:
            run = replaced(base, changes)
        except UserError as problem:
            raise UserError(f"{self.path} cannot be {text}: {problem}") from problem
        value = _read(text)
        number = float(value) if type(value) in (int, float) else None
        return Point(text, run, number)


def field_of(words: str) -> Field:
    """The sweep that `PATH=VALUE,VALUE,…` names. Commas within brackets part nothing. Raises `UserError` where the
    path or the values are missing."""
    path, _, listed = words.partition("=")
    values, depth, start = [], 0, 0
    for place, letter in enumerate(listed + ","):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            values.append(listed[start:place].strip())
            start = place + 1
    values = [value for value in values if value]
    if not path.strip() or not values:
        raise UserError(
            f"{words!r} names no field and values: write PATH=VALUE,VALUE, such as crop.scale.0=0.1,0.2,0.4"
        )
    return Field(path.strip(), tuple(values))


def _targets(base: Run, path: str) -> dict[str, tuple[Any, Any, int | None]]:
    """The fields that a path ends, each with its type, its value, and the place in it that is meant, if one is."""
    known = {leaf.path: leaf for leaf in leaves(base) if not leaf.path.startswith(_NOT_THESE)}
    found: dict[str, tuple[Any, Any, int | None]] = {
        full: (leaf.annotation, leaf.value, None) for full, leaf in known.items() if _ends(full, path)
    }
    above, _, last = path.rpartition(".")
    if not found and last.isdecimal() and above:
        found = {
            full: (leaf.annotation, leaf.value, int(last))
            for full, leaf in known.items()
            if _ends(full, above) and isinstance(leaf.value, tuple) and int(last) < len(leaf.value)
        }
    if not found:
        raise UserError(f"{base.recipe} has no field {path!r}{did_you_mean(path, known)}")
    return found


def _ends(full: str, path: str) -> bool:
    return full == path or full.endswith("." + path)


def _read(text: str) -> Any:
    """A value as Python writes it; a word that is none is itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _like(held: Any, new: Any) -> Any:
    """Whole numbers as floats where floats are held."""
    if isinstance(held, tuple) and isinstance(new, tuple | list) and len(held) == len(new):
        return tuple(map(_like, held, new))
    return float(new) if isinstance(held, float) and type(new) is int else new


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple | list) else value
