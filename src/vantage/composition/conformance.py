"""Whether a part fits a field: by its class, or by the members of a protocol."""

from abc import ABCMeta
from dataclasses import fields
from functools import cache
from inspect import Parameter, signature
from typing import Any, get_type_hints

__all__ = ["conforms"]


@cache
def conforms(kind: type, annotation: Any) -> bool:
    """Whether a part fits a field: it is an instance of the field's class, or has the members of its protocol.

    Methods must take as many arguments (with the same names, in parts of Vantage), and return the same type if both are
    annotated. Python's own check looks only at the names of methods, so every callable part would fit every field that
    takes a callable.
    """
    if not getattr(annotation, "_is_protocol", False):
        return annotation is Any or issubclass(kind, annotation)
    members = {name: member for above in annotation.__mro__[:-1] for name, member in vars(above).items()}
    return all(_has(kind, name, member) for name, member in members.items() if name == "__call__" or name[0] != "_")


def _has(kind: type, name: str, member: Any) -> bool:
    own = next((vars(above)[name] for above in kind.__mro__ if name in vars(above)), None)
    if own is None or not callable(member):
        return own is not None or name in {f.name for f in fields(kind)}
    return callable(own) and _takes(own, member) and _returns(own, member)


def _takes(own: Any, member: Any) -> bool:
    parameters, names = list(signature(own).parameters.values()), list(signature(member).parameters)
    if own.__module__.startswith("vantage.") and [one.name for one in parameters][: len(names)] != names:
        return False
    required = [one for one in parameters if one.default is Parameter.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    most = float("inf") if any(one.kind is one.VAR_POSITIONAL for one in parameters) else len(parameters)
    return len(required) <= len(names) <= most


def _returns(own: Any, member: Any) -> bool:
    try:
        pair = [get_type_hints(method).get("return", Any) for method in (own, member)]
    except NameError:  # a name that is only imported for type checkers
        return True
    return not all(type(kind) in (type, ABCMeta) for kind in pair) or issubclass(*pair)
