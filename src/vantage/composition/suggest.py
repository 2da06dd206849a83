"""Suggestions for mistyped words."""

import difflib
from collections.abc import Iterable, Iterator

from vantage.errors import UserError

__all__ = ["did_you_mean", "no_such"]

_CLOSE, _LESS_CLOSE = 0.8, 0.5
"""Minimum similarity of two words, and of two words with the same first letter."""


def did_you_mean(word: str, names: Iterable[str], otherwise: str = "") -> str:
    """`; did you mean X?` for the known names nearest to the word, compared whole or by their last part; `otherwise` if
    none is near."""
    near = next(filter(None, _guesses(word, list(names))), None)
    if near is None:
        return otherwise
    more = f" (or {len(near) - 2} more)" if len(near) > 2 else ""
    return f"; did you mean {' or '.join(near[:2])}{more}?"


def no_such(what: str, word: str, names: Iterable[str], plural: str = "") -> UserError:
    """The error for an unknown word, with the nearest known name, or with all names if none is near."""
    names = list(names)
    listing = f" ({plural or f'{what}s'}: {', '.join(names)})"
    return UserError(f"there is no {what} {word!r}{did_you_mean(word, names, listing)}")


def _guesses(word: str, names: list[str]) -> Iterator[list[str]]:
    """The names that a word may stand for, by one reason after another, the surest first."""
    last, plain = _last(word), word.lstrip("-")
    by_plain = {name.lstrip("-"): name for name in names}  # all flags share the dashes, so they are not compared
    yield [name for name in names if name.lower() == word.lower()]
    yield [name for name in names if _last(name) == last]
    begun = sorted((name for name in names if len(plain) > 2 and _letters(name).startswith(_letters(word))), key=len)
    shortest = [name for name in begun if len(name) == len(begun[0])]
    yield shortest if len(shortest) > 1 else []
    close = [by_plain[name] for name in difflib.get_close_matches(plain, by_plain, 1, _CLOSE)]
    yield [name for name in close if not begun or name in begun]  # resnext50 is resnext50_32x4d, not resnet50
    yield begun
    yield [name for name in names if _last(name).lower() == last.lower()]
    yield [name for name in names if sorted(_last(name)) == sorted(last)]  # letters in another order
    ends = difflib.get_close_matches(last, {_last(name) for name in names}, 1, _CLOSE)
    yield [name for name in names if _last(name) in ends]
    if len(plain) > 2:
        yield sorted((name for name in names if _last(name).startswith(plain)), key=len)
    same_start = [name for name in by_plain if name[:1] == plain[:1]]  # a typing error seldom changes the first letter
    yield [by_plain[name] for name in difflib.get_close_matches(plain, same_start, 1, _LESS_CLOSE)]


def _last(name: str) -> str:
    return name.lstrip("-").rpartition(".")[2]


def _letters(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()
