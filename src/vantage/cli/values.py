"""What is wrong with the words written for a field, in terms of what the field takes."""

import types
from collections.abc import Sequence
from typing import Any, Literal, Union, get_args, get_origin

from vantage.composition.suggest import did_you_mean

__all__ = ["misfit", "takes_several"]

_NAMES = {int: "a whole number", float: "a number", str: "a word", types.NoneType: "None"}
_MANY = {int: "whole numbers", float: "numbers", str: "words"}


def misfit(annotation: Any, words: Sequence[str]) -> str:
    """What was expected, what was found and what may have been meant; nothing for words that fit, and for fields whose
    values are written in a way that is not known here."""
    if not _known(annotation) or _fits(annotation, words):
        return ""
    choices = [str(choice) for choice in _choices(annotation)]
    wrong = next((word for word in words if not any(_fits(kind, [word]) for kind in _single(annotation))), "")
    found = ", found nothing" if not words else ""
    if words and not wrong:  # each of them would do
        found = f", found {len(words)}"
    hint = did_you_mean(wrong, choices) if wrong and not _fits(float, [wrong]) else ""
    if "," in wrong and get_origin(annotation) is not Literal and not hint:
        hint = "; write spaces, not commas"
    return f"expected {_told(annotation)}{found}{hint}"


def takes_several(annotation: Any) -> bool:
    """Whether a field's value may be more than one word."""
    inside = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    return any(get_origin(kind) is tuple for kind in inside)


def _known(annotation: Any) -> bool:
    """Whether it is of plain values, of choices, or of rows of these."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return all(map(_known, inside))
    if origin is tuple:
        return all(kind is Ellipsis or kind in _MANY for kind in inside) and bool(inside)
    return origin is Literal or annotation in _NAMES


def _fits(annotation: Any, words: Sequence[str]) -> bool:
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return any(_fits(kind, words) for kind in inside)
    if origin is tuple and inside[-1] is Ellipsis:
        return all(_fits(inside[0], [word]) for word in words)
    if origin is tuple:
        return len(words) == len(inside) and all(_fits(kind, [word]) for kind, word in zip(inside, words, strict=True))
    if len(words) != 1:
        return False
    if origin is Literal:
        return words[0] in map(str, inside)
    if annotation is types.NoneType:
        return words[0] == "None"
    try:
        annotation(words[0])
        return True
    except ValueError:
        return False


def _single(annotation: Any) -> list[Any]:
    """What one of the words may be."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType, tuple):
        return [single for kind in inside if kind is not Ellipsis for single in _single(kind)]
    return [annotation]


def _choices(annotation: Any) -> list[Any]:
    return [choice for kind in _single(annotation) if get_origin(kind) is Literal for choice in get_args(kind)]


def _told(annotation: Any) -> str:
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Literal or origin in (Union, types.UnionType):
        *before, last = _alternatives(annotation)
        return f"{', '.join(before)} or {last}" if before else last
    if origin is tuple and inside[-1] is Ellipsis:
        return f"{_MANY[inside[0]]} with spaces between"
    if origin is tuple:
        return f"{len(inside)} {_MANY[inside[0]]}"
    return _NAMES[annotation]


def _alternatives(annotation: Any) -> list[str]:
    if get_origin(annotation) in (Union, types.UnionType):
        return [told for kind in get_args(annotation) for told in _alternatives(kind)]
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation) if choice != ""]
    return [_told(annotation)]
