"""The modules of a user's own parts, which settings name and the caller has to allow."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vantage.composition.names import external_part
from vantage.errors import UserError

__all__ = ["check_modules", "is_allowed"]


def is_allowed(module: str, allowed: Sequence[str]) -> bool:
    """Whether a module, or a package that it is in, is among the allowed ones."""
    return any(module == root or module.startswith(root + ".") for root in allowed)


def check_modules(data: Any, allowed: Sequence[str]) -> None:
    """Raises `UserError` if parts in plain data are of several modules that are not allowed, and names all of them."""
    others = [module for module in dict.fromkeys(_modules_in(data)) if not is_allowed(module, allowed)]
    if len(others) > 1:
        raise UserError(
            f"parts of {len(others)} modules are not part of Vantage, so the modules were not imported; if you trust"
            f" them, allow them by name ({' '.join(f'--import {module}' for module in others)}, or"
            f" vantage.allowing({', '.join(map(repr, others))}) in Python)"
        )


def _modules_in(data: Any) -> Iterator[str]:
    """The modules of others whose parts plain data name, each as often as it is named; a script is not a module."""
    if isinstance(data, Mapping):
        name = data.get("part")
        own = external_part(name) if isinstance(name, str) else None
        if own is not None and own[0].partition(".")[0] not in ("vantage", "__main__"):
            yield own[0]
    for item in data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ():
        yield from _modules_in(item)
