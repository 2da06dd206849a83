"""Parts as plain data, and back, without running anything that the data name.

A part is `{"part": "Queue", field: value, …}`; tuples are lists, and numbers are exact. A name becomes a part only if
it is a frozen dataclass that Vantage offers, or one defined in a module that the caller allows by name. Every value is
checked against the annotation of its field.
"""

import importlib
import json
import math
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from vantage.composition.conformance import conforms, shortfall
from vantage.composition.names import RENAMED_FIELDS, external_part, is_part, name_of, part_named, public_name
from vantage.composition.own_modules import check_modules, is_allowed
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError, shorten

__all__ = ["allowed_names", "allowed_object", "allowed_part", "allowing", "decode", "encode", "is_written"]

_PART = "part"
_NOT_FINITE = ("inf", "-inf", "nan")
_ALLOWED: ContextVar[tuple[str, ...]] = ContextVar("allowed", default=())
_hints = cache(get_type_hints)  # a run has many parts of a kind, and a report many runs


@contextmanager
def allowing(*modules: str) -> Iterator[None]:
    """Within this block, parts of these modules and their submodules may be imported by name."""
    if others := [module for module in modules if not isinstance(module, str)]:
        raise UserError(f"a module is allowed by its name, such as 'my_parts', but found {others[0]!r}")
    token = _ALLOWED.set((*_ALLOWED.get(), *modules))
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def encode(value: Any, path: str = "run") -> Any:
    """Plain data for a part, a tuple or a leaf. Raises `UserError` for a value that could not be read back."""
    if is_dataclass(value) and not isinstance(value, type):
        try:
            name = name_of(type(value))
        except UserError as problem:
            raise UserError(f"{path}: {problem}") from None
        values = {
            f.name: encode(getattr(value, f.name), f"{path}.{f.name}") for f in fields(value) if is_written(f, value)
        }
        if _PART in values:
            raise UserError(f"{path}: {name} has a field named {_PART!r}, which settings reserve; rename it")
        return {_PART: name, **values}
    if isinstance(value, tuple):
        return [encode(item, f"{path}.{number}") for number, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or type(value) in (bool, int, float, str):
        return _in_64_bits(value, path)
    raise UserError(
        f"{path}: a {type(value).__name__} cannot be saved; parts hold numbers, text, tuples and other parts"
    )


def is_written(field: Field[Any], value: Any) -> bool:
    """Whether a field is written. A field that was added later, marked `metadata={"later": True}`, is left out if it
    has its default, so that parts that do not use it are written, and hashed, as before."""
    return field.init and not (field.metadata.get("later") and getattr(value, field.name) == field.default)


def decode(data: Any, annotation: Any, path: str = "") -> Any:
    """The value that plain data stands for. Raises `UserError`, with the path, if it does not fit the annotation."""
    origin = get_origin(annotation)
    if origin is Literal:
        matches = [choice for choice in get_args(annotation) if type(choice) is type(data) and choice == data]
        return matches[0] if matches else _refuse(data, annotation, path)
    if origin in (Union, types.UnionType):
        return _one_of(data, annotation, path)
    if origin is tuple:
        return _tuple(data, annotation, path)
    if annotation is float:
        return _float(data, path)
    if annotation in (bool, int, str, type(None)):
        return _in_64_bits(data, path) if type(data) is annotation else _refuse(data, annotation, path)
    if not isinstance(data, dict) or _PART not in data:
        _refuse(data, annotation, path)
    return _part(data, annotation, path)


def _in_64_bits(value: Any, path: str) -> Any:
    """The value. Raises `UserError` for a whole number beyond 64 bits, which tensors and data files cannot hold."""
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise UserError(f"{path}: expected a whole number of at most 64 bits, found one of {value.bit_length()} bits")
    return value


def _float(data: Any, path: str) -> float:
    if type(data) in (int, float) or (isinstance(data, str) and data in _NOT_FINITE):
        with suppress(OverflowError):  # a whole number beyond any float
            return float(data)
    return _refuse(data, float, path)


def _one_of(data: Any, annotation: Any, path: str) -> Any:
    if isinstance(data, dict) and _PART in data:
        # Decoded once, so that the message names the mistake inside the part, instead of saying that no choice fits.
        return _part(data, annotation, path)
    for choice in get_args(annotation):
        try:
            return decode(data, choice, path)
        except UserError:
            continue
    return _refuse(data, annotation, path)


def _tuple(data: Any, annotation: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        _refuse(data, annotation, path)
    kinds = get_args(annotation)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = kinds[:1] * len(data)
    if len(kinds) != len(data):
        _refuse(data, annotation, path)
    pairs = enumerate(zip(data, kinds, strict=True))
    return tuple(decode(item, kind, _below(path, str(number))) for number, (item, kind) in pairs)


def _part(data: Mapping[str, Any], annotation: Any, path: str) -> Any:
    if not path:
        check_modules(data, _ALLOWED.get())
    kind = _find(data[_PART], path)
    hints = _hints(kind)
    by_name = {f.name: f for f in fields(kind) if f.init}
    data = _with_present_names(kind.__name__, data)
    for name in data:
        if name not in by_name and name != _PART:
            hint = did_you_mean(name, by_name, f"; its fields are {', '.join(by_name) or 'none'}")
            raise UserError(f"{_below(path, name)}: {kind.__name__} has no field {name!r}{hint}")
    for name, f in by_name.items():
        if name not in data and f.default is MISSING and f.default_factory is MISSING:
            raise UserError(f"{_below(path, name)}: {kind.__name__} needs this field, and it is missing")
    values = {name: decode(data[name], hints[name], _below(path, name)) for name in by_name if name in data}
    try:
        part = kind(**values)
    except UserError as problem:
        raise UserError(f"{path}: {problem}" if path else str(problem)) from problem
    return part if _is_a(part, annotation) else _refuse(data[_PART], annotation, path, shortfall(kind, annotation))


def _with_present_names(part: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields by their current names; if the data hold both the old and the new name, the new one counts."""
    new_names = RENAMED_FIELDS.get(part, {})
    names = {name: new_names.get(name, name) for name in data}
    return {new: data[name] for name, new in names.items() if new is not None and (new == name or new not in data)}


def _find(name: Any, path: str) -> type:
    """The part that a name stands for."""
    where = path or "run"
    own = external_part(name) if isinstance(name, str) else None
    if own is not None and own[0].partition(".")[0] != "vantage":
        return allowed_part(*own, where)
    present = public_name(name) if own is not None or isinstance(name, str) and name.isidentifier() else ""
    if not present:
        raise UserError(f"{where}: expected the name of a part, such as Queue, found {name!r}")
    kind = part_named(present)
    if kind is None:
        raise UserError(f"{where}: this version has no part {name}; read it with the version that wrote it")
    return kind


def allowed_part(module: str, name: str, where: str) -> type:
    """A part of another package, if the caller allows its module."""
    kind = allowed_object(module, name, where)
    if not (is_part(kind) and kind.__module__ == module and kind.__qualname__ == name):
        raise UserError(f"{where}: {module}:{name} is not a part: expected a frozen dataclass that this module defines")
    return kind


def allowed_object(module: str, name: str, where: str) -> Any:
    """The object with this name in a module of another package, if the caller allows it; others are not imported."""
    allowed = is_allowed(module, _ALLOWED.get())
    if module == "__main__" and not (allowed and hasattr(sys.modules[module], name)):
        raise _from_a_script(name, where)
    without_ending = f"write it without .py: {module.removesuffix('.py')}:{name}" if module.endswith(".py") else ""
    if not allowed and without_ending:
        raise UserError(f"{where}: {module}:{name} names a file: {without_ending}")
    if not allowed:
        raise UserError(
            f"{where}: {module}:{name} is not part of Vantage, so its module was not imported; "
            f"if you trust it, allow it by name (--import {module}, or vantage.allowing({module!r}) in Python)"
        )
    try:
        content = importlib.import_module(module)
    except (ImportError, AttributeError):
        hint = without_ending or "check the name and the package"
        raise UserError(f"{where}: there is no {module}:{name} here: {hint}") from None
    if not hasattr(content, name):
        hint = did_you_mean(name, (one for one in vars(content) if one[0] != "_"), ": check the name")
        raise UserError(f"{where}: there is no {module}:{name} here{hint}")
    return getattr(content, name)


def _from_a_script(name: str, where: str) -> UserError:
    """The error for an object that a script or notebook defined: only the process that runs it can import it."""
    if hasattr(sys.modules["__main__"], name):
        return UserError(f"{where}: __main__:{name} is yours: allow it by vantage.allowing('__main__')")
    return UserError(
        f"{where}: {name} was defined in a script or notebook, which nothing can import: define it in a module, such as"
        f" my_parts.py, write my_parts:{name} in place of __main__:{name} (in a run: in its settings.json), and allow"
        " that module (--import my_parts, or vantage.allowing('my_parts') in Python)"
    )


def allowed_names(is_wanted: Callable[[Any], bool] = is_part) -> dict[str, str]:
    """The parts, or other things, that allowed modules define, as far as these are imported: MODULE:NAME by NAME."""
    return {
        name: f"{module}:{name}"
        for module in _ALLOWED.get()
        if module in sys.modules
        for name, value in vars(sys.modules[module]).items()
        if is_wanted(value) and value.__module__ == module
    }


def _is_a(part: Any, annotation: Any) -> bool:
    if annotation is Any:
        return True
    choices = get_args(annotation) or (annotation,)
    return any(conforms(type(part), choice) for choice in choices if isinstance(choice, type))


def _refuse(value: Any, annotation: Any, path: str, hint: str = "") -> NoReturn:
    expected = str(annotation) if get_origin(annotation) else getattr(annotation, "__name__", str(annotation))
    expected = re.sub(r"\b(?:typing|types|vantage)(?:\.\w+)*\.(?=\w)", "", expected)
    raise UserError(f"{path or 'run'}: expected {expected}, found {shorten(json.dumps(value))}{hint}")


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
