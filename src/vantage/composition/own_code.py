"""The code of a user's own parts: numbers that were kept must not count as those of code that was edited since."""

import dis
import importlib
import inspect
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cached_property
from types import CodeType, FunctionType, ModuleType
from typing import Any

from vantage.composition.fitting import parts_of
from vantage.composition.names import is_built_in
from vantage.composition.own_values import is_installed, is_installed_module, text_of, within

__all__ = ["code_of", "own_code"]


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
        if not is_installed(one):
            named = [pair for _, function in functions for pair in _named_by(function)]
            yield from _texts(named)
            left += [*_own(value for _, value in (*values, *named)), *_own(getattr(one, "__bases__", ()))]


def _functions(value: Any) -> Iterator[FunctionType]:
    """The functions behind a member of a class: itself, what a decorator wraps, or those of a property."""
    if isinstance(value, cached_property):
        value = value.func
    inner = (value.fget, value.fset) if isinstance(value, property) else (getattr(value, "__func__", value),)
    for function in map(_unwrapped, inner):
        if isinstance(function, FunctionType):
            yield function


def _compiled(code: CodeType) -> str:
    """What a function computes, wherever it stands in a file."""
    constants = [_compiled(value) if isinstance(value, CodeType) else text_of(value) for value in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars} {constants}"


def _named_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The values that a function names: of its module, as `module.name`, around it, and its defaults."""
    words = dict.fromkeys(_words(function.__code__))
    for word in words:
        value = function.__globals__.get(word)
        if isinstance(value, ModuleType):
            yield from _named_in(value, word, words)
        else:
            yield word, _unwrapped(value)
    for module in _imported_by(function):
        yield from _named_in(module, module.__name__, words)
    for word, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not filled yet
            yield word, _unwrapped(cell.cell_contents)
    yield from (("default", value) for value in function.__defaults__ or ())
    yield from (function.__kwdefaults__ or {}).items()


def _named_in(module: ModuleType, path: str, words: Iterable[str], above: tuple[ModuleType, ...] = ()) -> Iterator[Any]:
    """Which values of a user's own module, and of the modules in it, the words name."""
    for word in words if not is_installed(module) and module not in above else ():
        value = vars(module).get(word)
        if isinstance(value, ModuleType):
            yield from _named_in(value, f"{path}.{word}", words, (*above, module))
        elif word in vars(module):
            yield f"{path}.{word}", _unwrapped(value)


def _imported_by(function: FunctionType) -> Iterator[ModuleType]:
    """The user's own modules that a function imports only when it is called."""
    steps = list(dis.get_instructions(function))
    for number, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            name = "." * int(steps[number - 2].argval) + str(step.argval)
            with suppress(Exception):  # what is wrong with it, the call will tell
                if name[0] == "." or not is_installed_module(name):
                    yield importlib.import_module(name, function.__globals__.get("__package__"))


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
        if value is not None and (text := text_of(value)) is not None:
            yield f"{name} = {text}"
        elif title is not None and is_installed(value):
            yield f"{name} = {getattr(value, '__module__', None)}.{title}"


def _own(values: Iterable[Any]) -> Iterator[Any]:
    """The user's own classes and functions among these values and in them, and the classes of others among them."""
    left, done = list(values), dict[int, Any]()
    while left:
        value = left.pop()
        if id(value) not in done:
            done[id(value)] = value
            code = value if isinstance(value, type | FunctionType) else type(value)
            if not is_installed(code):
                yield code
            left += within(value) or ()
