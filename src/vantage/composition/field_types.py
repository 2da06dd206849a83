"""Whether the fields of a composition hold what they say: for parts that were made in Python, which checks no types."""

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints
from weakref import WeakValueDictionary

from vantage.composition.conformance import conforms, shortfall
from vantage.composition.expression import alternatives, describe, takes_several
from vantage.composition.kinds import part_from_number
from vantage.errors import UserError, shorten

__all__ = ["check_types", "expect"]

_frozen_and_checked = WeakValueDictionary[int, Any]()
"""Parts that were found right and cannot change, by their `id`: a run made from another shares most of its parts."""


def check_types(part: Any, path: str = "") -> None:
    """Check every field of a part, and of the parts in it, against its type, as settings that are read from a file are.

    Raises `UserError` for the first that does not fit, with its path, what it takes, and what it holds.
    """
    if _frozen_and_checked.get(id(part)) is part:
        return
    hints, is_fixed = _hints(type(part)), type(part).__dataclass_params__.frozen
    for f in fields(part):
        if f.init and f.name in hints:
            value = getattr(part, f.name)
            _check(value, hints[f.name], f"{path}.{f.name}" if path else f.name)
            is_fixed = is_fixed and _is_fixed(value)
    if is_fixed and type(part).__weakrefoffset__:
        _frozen_and_checked[id(part)] = part


def _is_fixed(value: Any) -> bool:
    """Whether no part in a value that was checked can get another field: a user's own need not be frozen."""
    if isinstance(value, tuple):
        return all(map(_is_fixed, value))
    return not is_dataclass(value) or isinstance(value, type) or _frozen_and_checked.get(id(value)) is value


def expect(value: Any, kind: Any, what: str, give: str) -> None:
    """Raises `UserError` if what a function was given is of another type; `give` says what to give."""
    if isinstance(value, kind):
        return
    kind_of = type(value).__name__
    named = f"the {kind_of} {value.__name__}" if hasattr(value, "__name__") else f"of type {kind_of}"
    found = repr(value) if isinstance(value, str | int | float | None) else named
    raise UserError(f"{what} is {found[:60]}: give {give}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    try:
        return get_type_hints(kind)
    except NameError:  # the type of a user's part is only imported for type checkers
        return {}


def _check(value: Any, annotation: Any, path: str) -> None:
    if isinstance(value, list) and takes_several(annotation):
        raise UserError(
            f"{path}: expected {describe(annotation)}, found a list; write a tuple, as in (one, two) or (one,)"
        )
    kinds = [kind for kind in alternatives(annotation) if _fits(value, kind)]
    if not kinds:
        found = f"the class {value.__name__} itself" if isinstance(value, type) else repr(value)
        raise UserError(f"{path}: expected {describe(annotation)}, found {shorten(found)}{_hint(value, annotation)}")
    if isinstance(value, tuple) and (of := get_args(kinds[0])):
        for number, item in enumerate(value):
            _check(item, of[0 if of[-1] is Ellipsis else number], f"{path}.{number}")
    elif is_dataclass(value) and not isinstance(value, type):
        check_types(value, path)


def _hint(value: Any, annotation: Any) -> str:
    """What a part lacks, or how to write a number that only the command line takes for a part."""
    if is_dataclass(value) and not isinstance(value, type):
        return shortfall(type(value), annotation)
    if type(value) not in (int, float):
        return ""
    names = [name for kind in alternatives(annotation) if isinstance(kind, type) and (name := part_from_number(kind))]
    return f": in Python, write {names[0]}({value})" if names else ""


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type; for a tuple, whether it is one of as many items. An object that is not a part fits
    every part's field: it works as long as nothing is saved."""
    if kind is float:
        return type(value) in (int, float)
    if kind in (bool, int, str, type(None)):
        return type(value) is kind
    if (origin := get_origin(kind)) is Literal:
        return any(type(value) is type(choice) and value == choice for choice in get_args(kind))
    if origin is tuple:
        kinds = get_args(kind)
        return isinstance(value, tuple) and (kinds[-1] is Ellipsis or len(kinds) == len(value))
    if not isinstance(kind, type):  # Any
        return True
    if is_dataclass(value) and not isinstance(value, type):
        return conforms(type(value), kind)
    return not (value is None or isinstance(value, (type, bool, int, float, str, tuple, list, dict)))
