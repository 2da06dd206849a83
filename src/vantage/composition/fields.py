"""A composition of parts as a flat list of fields with dotted paths, so that any field can be shown and replaced.

A path consists of field names and positions in tuples: `branches.0.estimator.temperature`.
"""

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, get_args, get_type_hints

from vantage.composition.suggest import no_such

__all__ = ["Setting", "differences", "field_help", "leaves", "replace_at", "settings_in"]


@dataclass(frozen=True)
class Setting:
    """One field of a composition, or one part of a tuple in it."""

    path: str
    """Dotted path."""

    annotation: Any
    """Its type."""

    value: Any
    """Its value."""

    help: str = ""
    """What it means."""

    holds_parts: bool = False
    """Whether it takes a part or a tuple of parts, not plain values."""


def settings_in(value: Any, path: str = "", changes: Mapping[str, Any] = {}) -> Iterator[Setting]:
    """Every field of a part, each followed by the fields of the parts in it. Values in `changes` replace those at their
    paths."""
    hints, words = get_type_hints(type(value)), field_help(type(value))
    for f in fields(value):
        if not f.init:
            continue
        below = f"{path}.{f.name}" if path else f.name
        part = changes.get(below, getattr(value, f.name))
        yield from _settings_at(Setting(below, hints[f.name], part, words.get(f.name, "")), changes)


def _settings_at(field: Setting, changes: Mapping[str, Any]) -> Iterator[Setting]:
    value = field.value
    if isinstance(value, tuple) and any(map(is_dataclass, value)):
        yield replace(field, holds_parts=True)
        kinds = get_args(field.annotation)
        for number, part in enumerate(value):
            below, kind = f"{field.path}.{number}", kinds[0 if kinds[-1] is Ellipsis else number]
            yield from _settings_at(Setting(below, kind, changes.get(below, part), field.help), changes)
    elif is_dataclass(value):
        yield replace(field, holds_parts=True)
        yield from settings_in(value, field.path, changes)
    else:
        yield replace(field, holds_parts=_is_for_parts(field.annotation))


def leaves(value: Any, path: str = "") -> Iterator[Setting]:
    """The fields of a part, and of all parts in it, that hold plain values."""
    return (field for field in settings_in(value, path) if not field.holds_parts)


def replace_at(value: Any, changes: Mapping[str, Any], above: str = "") -> Any:
    """The composition with new values at some paths. All are applied at once, so that checks of several fields of a
    part see all of them. Raises `UserError` for a path that it lacks; `above` is its own path there, with a dot."""
    direct = {path: new for path, new in changes.items() if "." not in path}
    inner: dict[str, dict[str, Any]] = {}
    for path, new in changes.items():
        head, dot, rest = path.partition(".")
        if dot:
            inner.setdefault(head, {})[rest] = new
    known = _names_in(value)
    for name in (*direct, *inner):
        if name not in known:
            raise no_such("setting", above + name, [above + each for each in known] or [above.rstrip(".")])
    changed = known | direct
    changed |= {name: replace_at(changed[name], inside, f"{above}{name}.") for name, inside in inner.items()}
    if isinstance(value, tuple):
        return tuple(changed.values())
    return replace(value, **{name: changed[name] for name in (*direct, *inner)})


def _names_in(value: Any) -> dict[str, Any]:
    """The fields of a part, or the items of a tuple, by name; any other value has none."""
    if isinstance(value, tuple):
        return {str(number): part for number, part in enumerate(value)}
    return {f.name: getattr(value, f.name) for f in fields(value) if f.init} if is_dataclass(value) else {}


@functools.cache
def field_help(kind: type) -> dict[str, str]:
    """The text under each field of a dataclass."""
    words: dict[str, str] = {}
    for above in reversed([k for k in kind.__mro__ if is_dataclass(k)]):
        try:
            (body,) = ast.parse(textwrap.dedent(inspect.getsource(above))).body
        except (OSError, TypeError, SyntaxError, ValueError):
            continue  # without source code, fields have no text
        words |= _texts_under(body.body) if isinstance(body, ast.ClassDef) else {}
    return words


def _texts_under(body: Sequence[ast.stmt]) -> dict[str, str]:
    """The text under each field in the body of a class."""
    words: dict[str, str] = {}
    for pair in zip(body, body[1:], strict=False):
        match pair:
            case ast.AnnAssign(ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                words[name] = " ".join(text.split())
    return words


def _is_for_parts(annotation: Any) -> bool:
    """Whether a field takes parts, even if it currently holds None or an empty tuple."""
    inside = get_args(annotation)
    if not inside:
        return isinstance(annotation, type) and annotation not in (bool, int, float, str, type(None))
    return any(_is_for_parts(kind) for kind in inside)


def differences(before: Any, after: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Where two compositions of dataclasses and tuples differ: (path, before, after) for each difference."""
    if type(before) is type(after) and is_dataclass(before):
        names = [f.name for f in fields(before) if f.compare]  # the path of a part's file may differ
        pairs = [(name, getattr(before, name), getattr(after, name)) for name in names]
    elif isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
        pairs = [(str(n), a, b) for n, (a, b) in enumerate(zip(before, after, strict=True))]
    else:
        return [] if before == after else [(path, before, after)]
    return [change for name, a, b in pairs for change in differences(a, b, f"{path}.{name}" if path else name)]
