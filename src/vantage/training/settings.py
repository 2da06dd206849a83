"""A run's settings as plain data: written beside the run, read back into a typed `Run` without running what it names.

`settings.json` holds every part as `{"part": "vantage.negatives:Sample", field: value, …}`; tuples are lists, numbers
are exact. `settings.py.txt` says the same in Python for people; nothing reads it.

A name is turned into a part only if it is a frozen dataclass that its own module defines, in the `vantage` package or
in a module that the caller allows by name. Every value is checked against the annotation of its field.
"""

import difflib
import importlib
import json
import math
import re
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from rich.pretty import pretty_repr

from vantage.errors import UserError
from vantage.storage import beside
from vantage.storage.files import written_whole
from vantage.training.run import Run

__all__ = ["FILE", "PYTHON_FORM", "SCHEMA", "allowing", "decode", "encode", "read", "write"]

FILE = "settings.json"
"""Name of the file that is read back."""
PYTHON_FORM = "settings.py.txt"
"""Name of the file for people."""
SCHEMA = 1
"""Form of the file; raised when an older reader would misread a newer file."""

_PART = "part"
_NAME = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*)")
_NOT_FINITE = ("inf", "-inf", "nan")
_ALLOWED: ContextVar[tuple[str, ...]] = ContextVar("allowed", default=())


@contextmanager
def allowing(*modules: str) -> Iterator[None]:
    """Within this block, `read` may import parts from these modules and those below them, whoever calls it."""
    before = _ALLOWED.set((*_ALLOWED.get(), *modules))
    try:
        yield
    finally:
        _ALLOWED.reset(before)


def write(run: Run, folder: Path) -> Path:
    """Write `settings.json` and its Python form into `folder`, each whole or not at all; returns the first. Files that
    parts need are copied there too.

    Raises `UserError` where a part could not be read back (it is local to a function, or holds what is not plain data),
    or where the folder cannot be written to.
    """
    text = json.dumps({"schema": SCHEMA, "run": encode(run)}, indent=1, allow_nan=False)
    python = f"# For people; {FILE} is what is read back.\n{pretty_repr(run, max_width=100)}\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / PYTHON_FORM, python)
        beside.keep(run, folder)
        _replace(folder / FILE, text + "\n")
    except OSError as problem:
        raise UserError(f"the settings could not be written to {folder}: {problem.strerror or problem}") from problem
    return folder / FILE


def read(folder: Path, allow: tuple[str, ...] = ()) -> Run:
    """The `Run` that `write` put into `folder`; equal to the one written.

    `allow` names modules, beside Vantage's own and those of `allowing`, whose parts may be imported; everything below
    them is allowed too. A field that the file lacks takes its default, if it has one. Raises `UserError` that names the
    file, the path in it, what was expected and what was found.
    """
    path = folder / FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{folder} holds no run: there is no {FILE} in it. Name the folder given to --out") from None
    except (OSError, ValueError, RecursionError) as problem:
        raise UserError(f"{path} cannot be read: {problem}") from problem
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        found = content.get("schema") if isinstance(content, dict) else type(content).__name__
        raise UserError(
            f"{path}: expected settings of schema {SCHEMA}, found {found!r}; read it with the version that wrote it"
        )
    try:
        run = decode(content.get("run"), Run, allow)
    except UserError as problem:
        raise UserError(f"{path}: {problem}") from problem
    return beside.beside(run, folder)


def encode(value: Any, path: str = "run") -> Any:
    """Plain data for a part, a tuple or a leaf. Raises `UserError` for what could not be read back."""
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        if not _is_part(kind) or "<" in kind.__qualname__ or "." in kind.__qualname__:
            raise UserError(
                f"{path}: {kind.__qualname__} cannot be saved; make it a frozen dataclass at the top of its module"
            )
        inside = {f.name: encode(getattr(value, f.name), f"{path}.{f.name}") for f in fields(value) if f.init}
        if _PART in inside:
            raise UserError(
                f"{path}: {kind.__qualname__} has a field named {_PART!r}, which settings use themselves; rename it"
            )
        return {_PART: f"{kind.__module__}:{kind.__qualname__}", **inside}
    if isinstance(value, tuple):
        return [encode(item, f"{path}.{number}") for number, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise UserError(
        f"{path}: a {type(value).__name__} cannot be saved; parts hold numbers, text, tuples and other parts"
    )


def decode(data: Any, annotation: Any, allow: tuple[str, ...] = (), path: str = "") -> Any:
    """The value that plain data stands for, if it is what the annotation says; else `UserError`, with the path."""
    origin = get_origin(annotation)
    if origin is Literal:
        matches = [choice for choice in get_args(annotation) if type(choice) is type(data) and choice == data]
        return matches[0] if matches else _refuse(data, annotation, path)
    if origin in (Union, types.UnionType):
        return _one_of(data, annotation, allow, path)
    if origin is tuple:
        return _tuple(data, annotation, allow, path)
    if annotation is float and isinstance(data, str) and data in _NOT_FINITE:
        return float(data)
    if annotation in (bool, int, float, str, type(None)):
        accepted = (int, float) if annotation is float else (annotation,)
        return data if type(data) in accepted else _refuse(data, annotation, path)
    if not isinstance(data, dict) or _PART not in data:
        _refuse(data, annotation, path)
    return _part(data, annotation, allow, path)


def _one_of(data: Any, annotation: Any, allow: tuple[str, ...], path: str) -> Any:
    choices = get_args(annotation)
    if isinstance(data, dict) and _PART in data:
        # Decoded once, so that a mistake inside the part is told, and not that no choice fits.
        return _part(data, annotation, allow, path)
    for choice in choices:
        try:
            return decode(data, choice, allow, path)
        except UserError:
            continue
    return _refuse(data, annotation, path)


def _tuple(data: Any, annotation: Any, allow: tuple[str, ...], path: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        _refuse(data, annotation, path)
    inside = get_args(annotation)
    if len(inside) == 2 and inside[1] is Ellipsis:
        inside = inside[:1] * len(data)
    if len(inside) != len(data):
        _refuse(data, annotation, path)
    pairs = enumerate(zip(data, inside, strict=True))
    return tuple(decode(item, kind, allow, _below(path, str(number))) for number, (item, kind) in pairs)


def _part(data: Mapping[str, Any], annotation: Any, allow: tuple[str, ...], path: str) -> Any:
    kind = _find(data[_PART], allow, path)
    hints = get_type_hints(kind)
    known = {f.name: f for f in fields(kind) if f.init}
    for name in data:
        if name not in known and name != _PART:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"its fields are {', '.join(known) or 'none'}"
            raise UserError(f"{_below(path, name)}: {kind.__name__} has no field {name!r}; {hint}")
    for name, f in known.items():
        if name not in data and f.default is MISSING and f.default_factory is MISSING:
            raise UserError(f"{_below(path, name)}: {kind.__name__} needs this field, and it is not there")
    given = {name: decode(data[name], hints[name], allow, _below(path, name)) for name in known if name in data}
    try:
        part = kind(**given)
    except UserError as problem:
        raise UserError(f"{path}: {problem}" if path else str(problem)) from problem
    return part if _is_a(part, annotation) else _refuse(data[_PART], annotation, path)


def _find(written: Any, allow: tuple[str, ...], path: str) -> type:
    """The part that a name stands for. Only modules of Vantage, and those allowed, are ever imported."""
    where = path or "run"
    match = _NAME.fullmatch(written) if isinstance(written, str) else None
    if match is None:
        raise UserError(f"{where}: expected a part such as vantage.memory.queue:Queue, found {written!r}")
    module, name = match["module"], match["name"]
    if not any(module == root or module.startswith(root + ".") for root in ("vantage", *_ALLOWED.get(), *allow)):
        raise UserError(
            f"{where}: the part {written} is not Vantage's own, so its module was not imported; "
            f"if you trust it, allow it by name (--import {module})"
        )
    if "__" in module:
        raise UserError(f"{where}: {written} names no module that holds parts")
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise UserError(
            f"{where}: this version has no part {written}; read it with the version that wrote it"
        ) from None
    # A module that has become a folder still gives the parts that it held: settings written before stay readable.
    home = isinstance(kind, type) and module in (kind.__module__, kind.__module__.rpartition(".")[0])
    if not (home and module != "vantage" and _is_part(kind) and kind.__qualname__ == name):
        raise UserError(f"{where}: {written} is no part: expected a frozen dataclass that this module defines")
    return kind


def _is_part(kind: type) -> bool:
    parameters = kind.__dict__.get("__dataclass_params__")  # its own: a plain subclass of a part is none
    return parameters is not None and parameters.frozen


def _is_a(part: Any, annotation: Any) -> bool:
    if annotation is Any:
        return True
    choices = get_args(annotation) or (annotation,)
    return any(isinstance(part, choice) for choice in choices if isinstance(choice, type))


def _refuse(found: Any, annotation: Any, path: str) -> NoReturn:
    expected = str(annotation) if get_origin(annotation) else getattr(annotation, "__name__", str(annotation))
    expected = re.sub(r"\b(?:typing|types|vantage)(?:\.\w+)*\.(?=\w)", "", expected)
    shown = json.dumps(found)
    raise UserError(f"{path or 'run'}: expected {expected}, found {shown if len(shown) <= 60 else shown[:57] + '…'}")


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _replace(path: Path, text: str) -> None:
    with written_whole(path) as file:
        file.write(text.encode())
