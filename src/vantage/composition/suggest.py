"""What a mistyped word may have meant."""

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """`; did you mean X?` for the nearest known words, whole or by their last part; else `otherwise`."""
    known = list(known)
    last = _last(word)
    near = [name for name in known if _last(name) == last]
    near = near or difflib.get_close_matches(word, known, 1, 0.75)
    if not near:
        ends = difflib.get_close_matches(last, {_last(name) for name in known}, 1, 0.75)
        near = [name for name in known if ends and _last(name) == ends[0]]
    if not near and len(word.lstrip("-")) > 2:
        near = [name for name in known if name.lstrip("-").startswith(word.lstrip("-"))]
    if not near:  # the dashes that all flags have make none alike
        plain = {name.lstrip("-"): name for name in known}
        near = [plain[name] for name in difflib.get_close_matches(word.lstrip("-"), plain, 1, 0.5)]
    if not near:
        return otherwise
    more = f" (or {len(near) - 2} more)" if len(near) > 2 else ""
    return f"; did you mean {' or '.join(near[:2])}{more}?"


def _last(name: str) -> str:
    return name.lstrip("-").rpartition(".")[2]
