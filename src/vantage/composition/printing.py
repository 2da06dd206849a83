"""A composition as Python code, with parts by their public names and without fields that have their default."""

from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from vantage.composition.names import is_built_in

__all__ = ["as_python", "in_a_line", "in_full", "with_first_field"]


def as_python(value: Any, width: int = 100, indent: int = 0) -> str:
    """The expression, broken into lines if it is wider than `width`; it needs the names of `vantage`."""
    line = in_a_line(value)
    if len(line) + indent <= width:
        return line
    if isinstance(value, tuple):
        opening, items, closing = "(", [("", item) for item in value], ")"
    elif is_dataclass(value):
        opening, items, closing = (
            f"{_name(type(value))}(",
            [(f"{n}=", inside) for n, inside in _non_defaults(value)],
            ")",
        )
    else:
        return line
    margin = " " * (indent + 4)
    inner = "".join(f"{margin}{name}{as_python(item, width - len(name), indent + 4)},\n" for name, item in items)
    return f"{opening}\n{inner}{' ' * indent}{closing}"


def in_a_line(value: Any) -> str:
    """The expression on one line."""
    if isinstance(value, tuple):
        return f"({', '.join(map(in_a_line, value))}{',' * (len(value) == 1)})"
    if is_dataclass(value) and not isinstance(value, type):
        return _call(value, _non_defaults(value))
    return repr(value)


def in_full(value: Any) -> str:
    """The expression on one line, with all fields of the part itself; the parts in it are as in `in_a_line`."""
    if not is_dataclass(value) or isinstance(value, type):
        return in_a_line(value)
    return _call(value, _pairs(value))


def with_first_field(value: Any) -> str:
    """`in_a_line`, with the part's first field even if it has its default: a network is known by its depth or width."""
    if not is_dataclass(value) or isinstance(value, type):
        return in_a_line(value)
    return _call(value, list(dict([*_pairs(value)[:1], *_non_defaults(value)]).items()))


def _call(value: Any, pairs: list[tuple[str, Any]]) -> str:
    return f"{_name(type(value))}({', '.join(f'{name}={in_a_line(inside)}' for name, inside in pairs)})"


def _pairs(value: Any) -> list[tuple[str, Any]]:
    return [(f.name, getattr(value, f.name)) for f in fields(value) if f.init]


def _non_defaults(value: Any) -> list[tuple[str, Any]]:
    """The fields that differ from their defaults."""
    pairs = [(f, getattr(value, f.name)) for f in fields(value) if f.init]
    defaults = [f.default if f.default_factory is MISSING else f.default_factory() for f, _ in pairs]
    return [(f.name, inside) for (f, inside), default in zip(pairs, defaults, strict=True) if inside != default]


def _name(kind: type) -> str:
    return kind.__name__ if is_built_in(kind) else f"{kind.__module__}.{kind.__name__}"
