"""All parts by name, and those that fit a field."""

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

from vantage.composition.codec import allowed_names, allowed_part
from vantage.composition.conformance import conforms
from vantage.composition.names import external_part, is_part, part_named
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

__all__ = ["find_part", "part_from_number", "parts_that_fit", "usual_parts"]


def find_part(name: str, path: str, expected: Callable[[], str]) -> type:
    """The part with this public name, or MODULE:NAME in an allowed module. Raises `UserError` if there is none, with
    what is `expected` if no name is near."""
    own = external_part(name)
    if own is not None:
        return allowed_part(*own, path)
    kind = part_named(name)
    if kind is None:
        external = allowed_names()
        hint = f"; did you mean {external[name]}?" if name in external else did_you_mean(name, _parts())
        raise UserError(f"{path}: there is no part {name!r}{hint or f'; expected {expected()}'}")
    return kind


@cache
def _parts() -> dict[str, type]:
    """The parts that `vantage` offers, by name."""
    package = importlib.import_module("vantage")
    return {name: kind for name in dir(package) if is_part(kind := getattr(package, name))}


def parts_that_fit(annotation: type) -> list[str]:
    """Names of the public parts that fit a field."""
    return [name for name, kind in _parts().items() if conforms(kind, annotation)]


def usual_parts(annotation: type) -> tuple[list[str], bool]:
    """Names of the public parts that fit a field: those beside its contract, if any are. Then whether there are others,
    which may fit by their members alone."""
    fitting, folder = parts_that_fit(annotation), annotation.__module__.rpartition(".")[0] + "."
    beside = [name for name in fitting if _parts()[name].__module__.startswith(folder)]
    return beside or fitting, bool(beside) and beside != fitting


def part_from_number(annotation: type) -> str | None:
    """Name of the public part that a plain number stands for in a field: of those that fit, the one that says so by
    `from_number`. Its only required field is that number. None for a field that takes anything."""
    if annotation in (Any, object):
        return None
    return next((name for name in parts_that_fit(annotation) if getattr(_parts()[name], "from_number", False)), None)
