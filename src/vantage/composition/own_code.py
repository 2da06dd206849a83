"""The code of a user's own parts: numbers that were kept must not count as those of code that was edited since."""

import inspect
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from types import CodeType, EllipsisType, FunctionType, ModuleType
from typing import Any

from vantage.composition.fitting import parts_of
from vantage.composition.names import is_built_in

__all__ = ["code_of", "own_code"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def own_code(value: Any) -> list[str]:
    """The code of a user's own parts in a composition, each piece once."""
    kinds = dict.fromkeys(type(part) for part in parts_of(value) if is_dataclass(part))
    return list(dict.fromkeys(text for kind in kinds if not is_built_in(kind) for text in code_of(kind)))


def code_of(kind: type) -> Iterator[str]:
    """The code of a class, and of the user's own classes, functions and values that it names, and so on, each with its
    name. It is the code that runs, as Python compiled it: a class typed into a console or a notebook has no file, and a
    file may have been edited since it was imported. What an installed package names is not looked at."""
    left: list[Any] = [kind]
    done = dict[int, Any]()
    while left:
        one = left.pop()
        if id(one) in done:
            continue
        done[id(one)] = one
        members = sorted(vars(one).items()) if isinstance(one, type) else [("", one)]
        functions = [(name, each) for name, value in members for each in _functions(value)]
        # Python adds some `__names__` of its own to a class when it is used.
        values = [(name, value) for name, value in members if name[:2] != "__" and not list(_functions(value))]
        texts = [*(f"{name} {_compiled(each.__code__)}" for name, each in functions), *_texts(values)]
        yield "\n".join([f"{one.__module__}.{one.__qualname__}", *texts])
        if not _is_installed(one):
            named = [pair for _, function in functions for pair in _named_by(function)]
            yield from _texts(named)
            left += [*_own(value for _, value in (*values, *named)), *_own(getattr(one, "__bases__", ()))]


def _functions(value: Any) -> Iterator[FunctionType]:
    """The functions behind a member of a class: itself, what a decorator wraps, or those of a property."""
    inner = (value.fget, value.fset) if isinstance(value, property) else (getattr(value, "__func__", value),)
    for function in map(_unwrapped, inner):
        if isinstance(function, FunctionType):
            yield function


def _compiled(code: CodeType) -> str:
    """What a function computes, wherever it stands in a file."""
    constants = [_compiled(value) if isinstance(value, CodeType) else _text(value) for value in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars} {constants}"


def _named_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The values that a function names: of its module, as `module.name`, around it, and its defaults."""
    words = dict.fromkeys(_words(function.__code__))
    for word in words:
        value = function.__globals__.get(word)
        if not isinstance(value, ModuleType):
            yield word, _unwrapped(value)
        elif not _is_installed(value):
            yield from ((f"{word}.{name}", _unwrapped(vars(value)[name])) for name in words if name in vars(value))
    for word, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not filled yet
            yield word, _unwrapped(cell.cell_contents)
    yield from (("default", value) for value in function.__defaults__ or ())
    yield from (function.__kwdefaults__ or {}).items()


def _words(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _words(value)


def _unwrapped(value: Any) -> Any:
    return inspect.unwrap(value) if callable(value) else value


def _texts(named: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """What can be said of values in text; a user's own classes and functions are pieces of their own."""
    for name, value in named:
        title = getattr(value, "__qualname__", None)
        if value is not None and (text := _text(value)) is not None:
            yield f"{name} = {text}"
        elif title is not None and _is_installed(value):
            yield f"{name} = {getattr(value, '__module__', None)}.{title}"


def _text(value: Any) -> str | None:
    """All about a plain value, and `None` for any other."""
    if not isinstance(value, list | dict):
        return _text_now(value)
    if id(value) not in _FIRST_TEXT:
        _FIRST_TEXT[id(value)] = value, _text_now(value)
    return _FIRST_TEXT[id(value)][1]


_FIRST_TEXT = dict[int, tuple[Any, str | None]]()
"""Lists and tables as they were when first looked at: code that records its calls in one is still the same code."""


def _text_now(value: Any) -> str | None:
    if isinstance(value, (*_PLAIN, EllipsisType)):
        return repr(value)
    if is_dataclass(value) and not isinstance(value, type):
        inside = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, dict):
        inside = [part for pair in value.items() for part in pair]
    elif isinstance(value, tuple | list | set | frozenset):
        inside = list(value)
    else:
        return None
    texts = [text for text in map(_text, inside) if text is not None]
    if len(texts) < len(inside):
        return None
    # Python keeps a set in an order that differs between processes.
    return f"{type(value).__qualname__}{sorted(texts) if isinstance(value, set | frozenset) else texts}"


def _own(values: Iterable[Any]) -> Iterator[Any]:
    """The user's own classes and functions among these values, and the classes of others among them."""
    for value in values:
        code = value if isinstance(value, type | FunctionType) else type(value)
        if not _is_installed(code):
            yield code


def _is_installed(value: Any) -> bool:
    """Whether a module, or that of a class or a function, belongs to Python, to Vantage or to an installed package."""
    name = (value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)) or "builtins"
    root = name.partition(".")[0]
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    known = root in sys.stdlib_module_names or root == "vantage"
    return known or root != "__main__" and any(folder in file for folder in ("site-packages", "dist-packages"))
