"""The code of a user's own parts: numbers that were kept must not count as those of code that was edited since."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any

from vantage.composition.fitting import parts_of
from vantage.composition.names import is_built_in

__all__ = ["code_of", "own_code"]

_PLAIN = (bool, int, float, str, type(None))


def own_code(value: Any) -> list[str]:
    """The code of a user's own parts in a composition, each piece once."""
    kinds = dict.fromkeys(type(part) for part in parts_of(value) if is_dataclass(part))
    return list(dict.fromkeys(text for kind in kinds if not is_built_in(kind) for text in code_of(kind)))


def code_of(kind: type) -> Iterator[str]:
    """The code of a class, and of the classes, functions and numbers of its own package that it names, and so on, each
    with its name. Code that was typed into a console is not known, and what is named of other packages, or by one that
    is installed, is not looked at."""
    left: list[Any] = [kind]
    done = set[str]()
    while left:
        one = left.pop()
        name = f"{one.__module__}.{one.__qualname__}"
        if name not in done:
            done.add(name)
            source = _source(one)
            yield f"{name}\n{source}"
            for word, value in _named_in(source, _names_beside(one)):
                if isinstance(value, _PLAIN) or isinstance(value, tuple) and all(isinstance(n, _PLAIN) for n in value):
                    yield f"{word} = {value!r}"
                elif _package(value) == _package(one):
                    left.append(value)


def _source(one: Any) -> str:
    try:
        return inspect.getsource(one)
    except (OSError, TypeError):  # typed into a console
        return ""


def _names_beside(one: Any) -> dict[str, Any]:
    """The names of the module that defines a class or a function; none if it is installed."""
    module = sys.modules.get(one.__module__)
    installed = any(name in (getattr(module, "__file__", None) or "") for name in ("site-packages", "dist-packages"))
    return {} if module is None or installed else vars(module)


def _named_in(source: str, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The objects of a module that some code of it names, by name or as `module.name`."""
    try:
        nodes = list(ast.walk(ast.parse(textwrap.dedent(source))))
    except SyntaxError:  # a lambda, cut out of its line
        return
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in names:
            yield node.id, inspect.unwrap(names[node.id])
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = names.get(node.value.id)
            if isinstance(module, ModuleType) and hasattr(module, node.attr):
                yield f"{node.value.id}.{node.attr}", inspect.unwrap(getattr(module, node.attr))


def _package(value: Any) -> str:
    """The package that defines a class or a function; empty for other values."""
    is_code = isinstance(value, type) or inspect.isfunction(value)
    return value.__module__.partition(".")[0] if is_code else ""
