"""Which parts there are, and which of them may stand in a field."""

import importlib
from abc import ABCMeta
from dataclasses import fields
from functools import cache
from inspect import Parameter, signature
from typing import Any, get_type_hints

from vantage.composition.codec import allowed_part
from vantage.composition.names import is_part, own_part, part_named
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

__all__ = ["find_part", "fits", "parts_that_fit"]


def find_part(name: str, path: str) -> type:
    """The part of a public name, or of MODULE:NAME where that module is allowed. Raises `UserError` where there is
    none."""
    own = own_part(name)
    if own is not None:
        return allowed_part(*own, path)
    kind = part_named(name)
    if kind is None:
        raise UserError(f"{path}: there is no part {name!r}{did_you_mean(name, _parts())}")
    return kind


@cache
def _parts() -> dict[str, type]:
    """The parts that `vantage` offers, by name."""
    package = importlib.import_module("vantage")
    return {name: kind for name in dir(package) if is_part(kind := getattr(package, name))}


def parts_that_fit(annotation: type) -> list[str]:
    """The public parts that may stand in a field."""
    return [name for name, kind in _parts().items() if fits(kind, annotation)]


def fits(kind: type, annotation: Any) -> bool:
    """Whether a part may stand in a field: it is of that class, or has what the protocol says.

    A method must take as many arguments, in parts of Vantage under the same names, and give what it should where both
    say so. Python's own check looks at the names of methods only, and takes any part that can be called for any other.
    """
    if not getattr(annotation, "_is_protocol", False):
        return annotation is Any or issubclass(kind, annotation)
    wanted = {name: member for above in annotation.__mro__[:-1] for name, member in vars(above).items()}
    return all(_has(kind, name, member) for name, member in wanted.items() if name == "__call__" or name[0] != "_")


def _has(kind: type, name: str, wanted: Any) -> bool:
    own = next((vars(above)[name] for above in kind.__mro__ if name in vars(above)), None)
    if own is None or not callable(wanted):
        return own is not None or name in {f.name for f in fields(kind)}
    return callable(own) and _takes(own, wanted) and _gives(own, wanted)


def _takes(own: Any, wanted: Any) -> bool:
    parameters, names = list(signature(own).parameters.values()), list(signature(wanted).parameters)
    if own.__module__.startswith("vantage.") and [one.name for one in parameters][: len(names)] != names:
        return False
    needed = [one for one in parameters if one.default is Parameter.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    most = float("inf") if any(one.kind is one.VAR_POSITIONAL for one in parameters) else len(parameters)
    return len(needed) <= len(names) <= most


def _gives(own: Any, wanted: Any) -> bool:
    try:
        pair = [get_type_hints(method).get("return", Any) for method in (own, wanted)]
    except NameError:  # a name that only a type checker sees
        return True
    return not all(type(kind) in (type, ABCMeta) for kind in pair) or issubclass(*pair)
