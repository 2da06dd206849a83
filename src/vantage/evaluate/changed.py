"""What of a protocol differs from its defaults, so that a table can say so."""

from dataclasses import MISSING, dataclass, fields
from typing import Any

__all__ = ["Changed", "changed"]


@dataclass(frozen=True)
class Changed:
    """One setting that is not as it is by default."""

    name: str
    """The field."""
    value: Any
    """What it is."""
    default: Any
    """What it is by default."""

    def __str__(self) -> str:
        """As a table's head has it, such as k=20."""
        return f"{self.name}={_words(self.value)}"

    @property
    def sentence(self) -> str:
        """With the default, such as: k is 20 (by default 200)."""
        return f"{self.name} is {_words(self.value)} (by default {_words(self.default)})"


def changed(protocol: Any) -> tuple[Changed, ...]:
    """The settings of a protocol that differ from their defaults, in the order of its fields; those without a default
    are no such thing."""
    return tuple(
        Changed(f.name, value, f.default)
        for f in fields(protocol)
        if f.default is not MISSING and (value := getattr(protocol, f.name)) != f.default
    )


def _words(value: Any) -> str:
    """As it is written on the command line."""
    if isinstance(value, tuple):
        return " ".join(map(_words, value)) or "none"
    if value == "":
        return "not given"
    return f"{value:g}" if isinstance(value, float) else str(value)
