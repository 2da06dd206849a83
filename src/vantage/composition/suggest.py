"""Suggestions for mistyped words."""

import difflib
from collections.abc import Iterable

from vantage.errors import UserError

__all__ = ["did_you_mean", "no_such"]


def did_you_mean(word: str, names: Iterable[str], otherwise: str = "") -> str:
    """`; did you mean X?` for the nearest known words, whole or by their last part; else `otherwise`."""
    names = list(names)
    last = _last(word)
    near = [name for name in names if name.lower() == word.lower()] or [name for name in names if _last(name) == last]
    near = near or difflib.get_close_matches(word, names, 1, 0.75)
    if not near:
        ends = difflib.get_close_matches(last, {_last(name) for name in names}, 1, 0.75)
        near = [name for name in names if ends and _last(name) == ends[0]]
    if not near and len(word.lstrip("-")) > 2:
        near = [name for name in names if name.lstrip("-").startswith(word.lstrip("-"))]
    if not near:  # without the dashes that all flags share
        plain = {name.lstrip("-"): name for name in names}
        near = [plain[name] for name in difflib.get_close_matches(word.lstrip("-"), plain, 1, 0.5)]
    if not near:
        return otherwise
    more = f" (or {len(near) - 2} more)" if len(near) > 2 else ""
    return f"; did you mean {' or '.join(near[:2])}{more}?"


def no_such(what: str, word: str, names: Iterable[str], plural: str = "") -> UserError:
    """The error for a word that names nothing: with the nearest known name, or with all of them where none is near."""
    names = list(names)
    listing = f" ({plural or f'{what}s'}: {', '.join(names)})"
    return UserError(f"there is no {what} {word!r}{did_you_mean(word, names, listing)}")


def _last(name: str) -> str:
    return name.lstrip("-").rpartition(".")[2]
