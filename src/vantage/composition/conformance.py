"""Whether a part fits a field: by its class, or by the members of a protocol."""

from abc import ABCMeta
from dataclasses import fields
from functools import cache
from inspect import Parameter, signature
from typing import Any, get_args, get_type_hints

from vantage.composition.names import is_built_in

__all__ = ["conforms", "shortfall"]


@cache
def conforms(kind: type, annotation: Any) -> bool:
    """Whether a part fits a field: it is an instance of the field's class, or has the members of its protocol.

    Methods must take as many arguments (with the same names, in parts of Vantage), and return the same type if both are
    annotated. Python's own check looks only at the names of methods, so every callable part would fit every field that
    takes a callable.
    """
    if not getattr(annotation, "_is_protocol", False):
        return annotation is Any or issubclass(kind, annotation)
    return all(_has(kind, name, member) for name, member in _members(annotation))


def shortfall(kind: type, annotation: Any) -> str:
    """What a user's own part would need to fit a field that takes a protocol, as the end of a message; empty for other
    parts and fields."""
    protocols = [one for one in get_args(annotation) or (annotation,) if getattr(one, "_is_protocol", False)]
    if is_built_in(kind) or not protocols:
        return ""
    names = {name for above in kind.__mro__ for name in vars(above)}  # `hasattr` finds __call__ in every class
    meant = min(
        protocols, key=lambda one: (not any(name in names for name, _ in _members(one)), len(_unfit(kind, one)))
    )
    unfit = _unfit(kind, meant)
    lacks, differs = ([_words(*pair) for pair in unfit if (pair[0] in names) == has] for has in (False, True))
    return f": it has no {', no '.join(lacks)}" * bool(lacks) + f": it must have {', '.join(differs)}" * bool(differs)


def _unfit(kind: type, protocol: Any) -> list[tuple[str, Any]]:
    return [pair for pair in _members(protocol) if not _has(kind, *pair)]


def _members(protocol: Any) -> list[tuple[str, Any]]:
    """The names and members of a protocol that count."""
    members = {name: member for above in protocol.__mro__[:-1] for name, member in vars(above).items()}
    return [(name, member) for name, member in members.items() if name == "__call__" or name[0] != "_"]


def _words(name: str, member: Any) -> str:
    """A member as its protocol has it: a method with the names of its arguments, and what it returns if that is a
    class."""
    if not callable(member):
        return name
    returns = get_type_hints(member).get("return")
    end = f" -> {returns.__name__}" if isinstance(returns, type) and type(returns) in (type, ABCMeta) else ""
    arguments = list(signature(member).parameters.values())[1:]
    words = [one.name if one.default is Parameter.empty else f"{one.name}={one.default!r}" for one in arguments]
    return f"{name}({', '.join(words)}){end}"


def _has(kind: type, name: str, member: Any) -> bool:
    own = next((vars(above)[name] for above in kind.__mro__ if name in vars(above)), None)
    if own is None or not callable(member):
        return own is not None or name in {f.name for f in fields(kind)}
    return callable(own) and _takes(own, member) and _returns(own, member)


def _takes(own: Any, member: Any) -> bool:
    parameters, asked = list(signature(own).parameters.values()), signature(member).parameters
    names, always = list(asked), [one for one in asked.values() if one.default is Parameter.empty]
    if own.__module__.startswith("vantage.") and [one.name for one in parameters][: len(names)] != names:
        return False
    required = [one for one in parameters if one.default is Parameter.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    most = float("inf") if any(one.kind is one.VAR_POSITIONAL for one in parameters) else len(parameters)
    return len(required) <= len(always) and len(names) <= most


def _returns(own: Any, member: Any) -> bool:
    try:
        pair = [get_type_hints(method).get("return", Any) for method in (own, member)]
    except NameError:  # a name that is only imported for type checkers
        return True
    return not all(type(kind) in (type, ABCMeta) for kind in pair) or issubclass(*pair)
