"""Values that the code of a user's own parts names, in text that is the same in every process."""

import importlib.util
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial, partialmethod
from hashlib import blake2b
from pathlib import PurePath
from types import EllipsisType, ModuleType
from typing import Any

import numpy as np
import torch

__all__ = ["is_installed", "is_installed_module", "text_of", "within"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), EllipsisType, range, Enum, PurePath)
_PLAIN += (np.generic, np.dtype, torch.dtype, torch.device)

_FIRST_TEXT = dict[int, tuple[Any, str | None]]()
"""Lists, tables and objects as they were when first looked at: code that records its calls in one is still the same."""


def text_of(value: Any) -> str | None:
    """All about a value that can be said in text, the same in every process; None for one of which nothing can."""
    return _text(value, ())


def within(value: Any) -> list[Any] | None:
    """The values that make up another, in an order that does not change; None for one that is not made of values."""
    if isinstance(value, (type, *_PLAIN)):
        return None
    if is_dataclass(value):
        return [getattr(value, field.name) for field in fields(value)]
    if isinstance(value, dict):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, tuple | list | set | frozenset):
        return list(value)
    if isinstance(value, partial | partialmethod):
        return [value.func, value.args, value.keywords]
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        return value.tolist()
    if is_installed(type(value)) or not hasattr(value, "__dict__"):
        return None
    return [part for pair in vars(value).items() for part in pair]


def is_installed(value: Any) -> bool:
    """Whether a module, or that of a class or a function, belongs to Python, to Vantage or to an installed package."""
    name = (value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)) or "builtins"
    return _is_of_package(name, getattr(sys.modules.get(name), "__file__", None))


def is_installed_module(name: str) -> bool:
    """The same of a module that need not be imported yet."""
    spec = importlib.util.find_spec(name.partition(".")[0])
    return spec is None or _is_of_package(name, spec.origin or " ".join(spec.submodule_search_locations or ()))


def _is_of_package(name: str, file: str | None) -> bool:
    root = name.partition(".")[0]
    known = root in sys.stdlib_module_names or root == "vantage"
    return known or root != "__main__" and any(folder in (file or "") for folder in ("site-packages", "dist-packages"))


def _text(value: Any, around: tuple[int, ...]) -> str | None:
    if isinstance(value, (tuple, frozenset, torch.Tensor, np.ndarray, *_PLAIN)):
        return _text_now(value, around)
    if id(value) not in _FIRST_TEXT:
        _FIRST_TEXT[id(value)] = value, _text_now(value, around)
    return _FIRST_TEXT[id(value)][1]


def _text_now(value: Any, around: tuple[int, ...]) -> str | None:
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_meta:
        return _numbers(value, value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return _numbers(value, value)
    if id(value) in around:
        return "the value that this is in"
    inside = within(value)
    if inside is None:
        return None
    texts = list(_all_texts(inside, (*around, id(value))))
    # Python keeps a set in an order that differs between processes.
    return f"{type(value).__qualname__}{sorted(texts) if isinstance(value, set | frozenset) else texts}"


def _all_texts(values: Iterable[Any], around: tuple[int, ...]) -> Iterator[str]:
    """The texts of values within another: of classes and functions the name, and of what has no text the type."""
    for value in values:
        code = value if hasattr(value, "__qualname__") else type(value)
        yield _text(value, around) or f"{code.__module__}.{code.__qualname__}"


def _numbers(value: torch.Tensor | np.ndarray, data: np.ndarray) -> str:
    digest = blake2b(data.tobytes(), digest_size=16).hexdigest()
    return f"{type(value).__qualname__} {value.dtype} {tuple(value.shape)} {digest}"
