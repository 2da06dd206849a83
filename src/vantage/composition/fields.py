"""A composition of parts as flat fields, each with its dotted path, so that any of them can be told and replaced.

A path names fields and places in tuples: `branches.0.estimator.temperature`.
"""

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import Any, get_type_hints

__all__ = ["REQUIRED", "Leaf", "field_help", "headings", "leaves", "options", "replaced"]


class _Required:
    """Stands where a field has no default."""


REQUIRED = _Required()
"""The value of a field that must be given."""


@dataclass(frozen=True)
class Leaf:
    """One field that a person may set."""

    path: str
    """Dotted path."""

    annotation: Any
    """Its type."""

    value: Any
    """What it is unless it is set; `REQUIRED` where it must be."""

    help: str = ""
    """What it means."""

    positional: bool = False
    """Whether it is given by its place, without a name."""

    aliases: tuple[str, ...] = ()
    """Other flags that set it, such as `--data`."""


def leaves(value: Any, path: str = "") -> Iterator[Leaf]:
    """The fields of a part, and of all parts in it, that are plain values."""
    hints, words = get_type_hints(type(value)), field_help(type(value))
    for f in fields(value):
        inside, below = getattr(value, f.name), f"{path}.{f.name}" if path else f.name
        if is_dataclass(inside):
            yield from leaves(inside, below)
        elif isinstance(inside, tuple) and any(is_dataclass(part) for part in inside):
            for number, part in enumerate(inside):
                yield from leaves(part, f"{below}.{number}")
        elif not _holds_parts(hints[f.name]):
            yield Leaf(below, hints[f.name], inside, words.get(f.name, ""))


def options(kind: type, positional: tuple[str, ...] = ()) -> tuple[Leaf, ...]:
    """The fields of a dataclass of plain values; those without a default are `REQUIRED`."""
    hints, words = get_type_hints(kind), field_help(kind)
    return tuple(
        Leaf(
            f.name, hints[f.name], REQUIRED if f.default is MISSING else f.default, words[f.name], f.name in positional
        )
        for f in fields(kind)
    )


def headings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, words) of every part in a part: the name of its kind and what it is there for."""
    words = field_help(type(value))
    for f in fields(value):
        inside, below = getattr(value, f.name), f"{path}.{f.name}" if path else f.name
        parts = inside if isinstance(inside, tuple) else (inside,)
        for number, part in enumerate(parts):
            if is_dataclass(part):
                place = f"{below}.{number}" if isinstance(inside, tuple) else below
                yield place, f"{type(part).__name__}. {words.get(f.name, '')}"
                yield from headings(part, place)


def replaced(value: Any, changes: Mapping[str, Any]) -> Any:
    """The same composition with other values at some paths; a check of several fields sees all changes at once."""
    here = {path: new for path, new in changes.items() if "." not in path}
    below: dict[str, dict[str, Any]] = {}
    for path, new in changes.items():
        head, dot, rest = path.partition(".")
        if dot:
            below.setdefault(head, {})[rest] = new
    if isinstance(value, tuple):
        return tuple(replaced(part, below[str(n)]) if str(n) in below else part for n, part in enumerate(value))
    return replace(value, **here, **{name: replaced(getattr(value, name), inside) for name, inside in below.items()})


@functools.cache
def field_help(kind: type) -> dict[str, str]:
    """The text under each field of a dataclass."""
    words: dict[str, str] = {}
    for above in reversed([k for k in kind.__mro__ if is_dataclass(k)]):
        try:
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(above))).body
        except (OSError, TypeError, SyntaxError, ValueError):
            continue  # made without source: fields without words
        statements = body.body if isinstance(body, ast.ClassDef) else []
        for first, second in zip(statements, statements[1:], strict=False):
            if isinstance(first, ast.AnnAssign) and isinstance(first.target, ast.Name):
                match second:
                    case ast.Expr(ast.Constant(str() as text)):
                        words[first.target.id] = " ".join(text.split())
    return words


def _holds_parts(annotation: Any) -> bool:
    """Whether a field, perhaps an empty tuple, is for parts, which no flag can write."""
    plain = (bool, int, float, str, type(None), ...)
    inside = getattr(annotation, "__args__", ())
    if not inside:
        return annotation not in plain
    return any(isinstance(kind, type) and kind not in plain and not getattr(kind, "__args__", ()) for kind in inside)
