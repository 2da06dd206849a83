"""The settings of a value that differ from their defaults, named as in tables."""

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any

__all__ = ["SettingChange", "changes"]


@dataclass(frozen=True)
class SettingChange:
    """One setting that differs from its default."""

    name: str
    """Name of the field; for a field of an inner part, after the field that holds the part: sizes.test_side."""
    value: Any
    """Its value."""
    default: Any
    """Its default."""

    def __str__(self) -> str:
        """Text for the head of a table, such as k=20."""
        return f"{self.name}={_words(self.value)}"

    @property
    def sentence(self) -> str:
        """Text with the default, such as: k is 20 (by default 200)."""
        return f"{self.name} is {_words(self.value)} (by default {_words(self.default)})"


def changes(value: Any) -> tuple[SettingChange, ...]:
    """The fields of a value, and of the parts in it, that differ from their defaults, in order. Fields without a
    default are left out."""
    return tuple(
        each
        for f in fields(value)
        if (default := f.default if f.default_factory is MISSING else f.default_factory()) is not MISSING
        for each in _between(f.name, getattr(value, f.name), default)
    )


def _between(name: str, value: Any, default: Any) -> Iterator[SettingChange]:
    """The changes at one field; if value and default are parts of the same class, field by field."""
    if is_dataclass(value) and type(value) is type(default):
        for f in fields(value):
            yield from _between(f"{name}.{f.name}", getattr(value, f.name), getattr(default, f.name))
    elif value != default:
        yield SettingChange(name, value, default)


def _words(value: Any) -> str:
    """A value as it is written on the command line."""
    if isinstance(value, tuple):
        return " ".join(map(_words, value)) or "none"
    if value == "":
        return "not given"
    return f"{value:g}" if isinstance(value, float) else str(value)
