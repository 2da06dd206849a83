"""The patterns with braces that name many shards: `train-{000000..000099}.tar`, `{a,b}/train-{0..9}.tar`."""

import re
from itertools import product
from math import prod

from vantage.errors import DataError

__all__ = ["MOST", "expand_braces"]

MOST = 1_000_000
"""Shards that one pattern may name."""

_RANGE = re.compile(r"(-?\d{1,18})\.\.(-?\d{1,18})(?:\.\.(-?\d{1,18}))?")
_DEEPEST = 50  # braces in braces


def expand_braces(pattern: str) -> list[str]:
    """The names that a pattern stands for, in its order, as bash and webdataset expand it.

    `{000..099}` counts (with leading zeros if an end has them, `{0..8..2}` in steps), `{a,b}` lists, braces nest.
    Braces with neither stand for themselves. Raises `DataError` for more than a million names.
    """
    return _expand(pattern, _DEEPEST)


def _expand(pattern: str, deepest: int) -> list[str]:
    if deepest == 0:
        raise DataError(f"braces are nested more than {_DEEPEST} deep in {pattern[:80]}: write a shorter pattern")
    choices: list[list[str]] = []
    opening, closing = _first_pair(pattern)
    while closing >= 0:
        choices += [[pattern[:opening]], _choices(pattern[opening + 1 : closing], deepest - 1)]
        pattern = pattern[closing + 1 :]
        opening, closing = _first_pair(pattern)
    _check_count(prod(map(len, choices)))
    return ["".join(parts) for parts in product(*choices, [pattern])]


def _choices(content: str, deepest: int) -> list[str]:
    """The names that one pair of braces stands for."""
    if (ends := _RANGE.fullmatch(content)) is not None:
        return _numbers(*ends.groups())
    parts = _split_at_commas(content)
    if len(parts) == 1:
        return [f"{{{name}}}" for name in _expand(content, deepest)]
    return [name for part in parts for name in _expand(part, deepest)]


def _check_count(count: int) -> None:
    if count > MOST:
        raise DataError(f"a pattern names {count:,} shards: at most {MOST:,} are read. Write a shorter range")


def _first_pair(pattern: str) -> tuple[int, int]:
    """The positions of the first opening brace that is closed and of its closing brace; (−1, −1) if there is none."""
    stack: list[int] = []
    pairs: list[tuple[int, int]] = []
    for at, letter in enumerate(pattern):
        if letter == "{":
            stack.append(at)
        elif letter == "}" and stack:
            pairs.append((stack.pop(), at))
    return min(pairs, default=(-1, -1))


def _split_at_commas(content: str) -> list[str]:
    """The parts between the commas that lie in no inner brace."""
    parts, depth = [""], 0
    for letter in content:
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _numbers(first: str, last: str, step: str | None) -> list[str]:
    has_zeros = any(end.lstrip("-").startswith("0") and len(end.lstrip("-")) > 1 for end in (first, last))
    width = max(len(first), len(last)) if has_zeros else 0
    stride, descending = abs(int(step or 1)) or 1, int(last) < int(first)
    _check_count(abs(int(last) - int(first)) // stride + 1)
    numbers = range(int(first), int(last) - 1, -stride) if descending else range(int(first), int(last) + 1, stride)
    return [f"{number:0{width}d}" for number in numbers]
