"""Which public names a module has, and which of them nobody has described."""

import ast
import dataclasses
import importlib
import inspect
import sys
import types
from collections.abc import Iterator
from functools import cache, cached_property

from sphinx.pycode import ModuleAnalyzer


@cache  # each module is parsed once, however often it is asked for
def defined_names(name: str) -> tuple[str, ...]:
    """Public names that a module defines itself, in the order of its source: of its `__all__`, if it has one."""
    offered = getattr(importlib.import_module(name), "__all__", None)
    own = tuple(own for own in _assigned(name) if not own.startswith("_"))
    return own if offered is None else tuple(public for public in own if public in offered)


def own_names(name: str) -> list[str]:
    """What a module gives its users: its `__all__`, or the public names that it defines itself."""
    return list(getattr(importlib.import_module(name), "__all__", None) or defined_names(name))


def undocumented(name: str) -> list[str]:
    """Dotted names in the module `name` that lack a docstring."""
    module = importlib.import_module(name)
    missing = [] if (module.__doc__ or "").strip() else [name]
    missing += [
        f"{name}.{public} (exported, but not there)" for public in own_names(name) if not _there(module, public)
    ]
    strings = _strings(name)
    for public in defined_names(name):
        thing = inspect.unwrap(getattr(module, public))
        if inspect.isclass(thing) and thing.__module__ == name:
            missing += [f"{name}.{lacking}" for lacking in _undocumented_in_class(thing, strings)]
        elif inspect.isfunction(thing) and thing.__module__ == name:
            missing += [] if (thing.__doc__ or "").strip() else [f"{name}.{public}"]
        elif not strings.get(("", public), "").strip():
            missing.append(f"{name}.{public}")
    return missing


def _there(module: types.ModuleType, public: str) -> bool:
    return hasattr(module, public) or f"{module.__name__}.{public}" in sys.modules


def _assigned(name: str) -> Iterator[str]:
    """Names bound at the top level of a module's source by a definition or an assignment."""
    analyzer = ModuleAnalyzer.for_module(name)
    for node in ast.parse(analyzer.code).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.TypeAlias) if sys.version_info >= (3, 12) else False:
            yield node.name.id
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _strings(name: str) -> dict[tuple[str, str], str]:
    """The strings behind assignments, by the class that holds them ("" for the module) and their name."""
    analyzer = ModuleAnalyzer.for_module(name)
    analyzer.analyze()
    return {place: "\n".join(lines) for place, lines in analyzer.attr_docs.items()}


def _undocumented_in_class(owner: type, strings: dict[tuple[str, str], str]) -> Iterator[str]:
    if not (owner.__doc__ or "").strip() or _made_by_dataclass(owner):
        yield owner.__qualname__
    fields = {field.name for field in dataclasses.fields(owner)} if dataclasses.is_dataclass(owner) else set()
    for name in dict.fromkeys([*inspect.get_annotations(owner), *vars(owner)]):
        value = inspect.getattr_static(owner, name, None)
        if name.startswith("_"):
            continue
        elif inspect.isclass(value) and value.__qualname__ == f"{owner.__qualname__}.{name}":
            yield from _undocumented_in_class(value, strings)
        elif name in fields:
            written = strings.get((owner.__qualname__, name), "")
        elif isinstance(value, property | cached_property):
            written = value.__doc__ or ""
        elif inspect.isfunction(value) or isinstance(value, classmethod | staticmethod):
            written = _own_docstring(owner, name)
        else:  # an attribute that a constructor sets
            continue
        if not written.strip():
            yield f"{owner.__qualname__}.{name}"


def _own_docstring(owner: type, name: str) -> str:
    """What the package says of a method: torch's word for an inherited `forward` describes none of ours."""
    for base in owner.__mro__:
        if base.__module__.split(".")[0] == owner.__module__.split(".")[0]:
            attribute = inspect.getattr_static(base, name, None)
            written = inspect.unwrap(getattr(attribute, "__func__", attribute)).__doc__ if attribute else None
            if written:
                return written
    return ""


def _made_by_dataclass(owner: type) -> bool:
    """Whether the docstring is the signature that `dataclass` writes where nobody wrote one."""
    return dataclasses.is_dataclass(owner) and (owner.__doc__ or "").startswith(f"{owner.__name__}(")
