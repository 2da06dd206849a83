"""A run's settings: written beside the run, and read back into an equal `Run`.

`settings.json` holds the parts as plain data (`vantage.composition.codec`). `settings.py.txt` shows the same as Python,
for people; no code reads it.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.pretty import pretty_repr

from vantage.composition.codec import decode, encode
from vantage.encoders.weights import PICKLES
from vantage.errors import UserError
from vantage.storage import beside
from vantage.storage.files import atomic_file, not_written
from vantage.storage.near import near_path
from vantage.storage.strangers import check_run_folder
from vantage.training.run import Run

__all__ = ["FILE", "PYTHON_FORM", "SCHEMA", "read", "read_run", "write"]

FILE = "settings.json"
"""Name of the file that is read back."""
PYTHON_FORM = "settings.py.txt"
"""Name of the file for people."""
SCHEMA = 2
"""Version of the format, raised when an older reader would misread a newer file. Before version 2, groups of BatchNorm
were counted within each process and accumulated part."""


def write(run: Run, folder: Path) -> Path:
    """Write `settings.json` and its Python form into `folder`, each complete or not at all; returns the path of
    the former. Files that parts need are copied there too.

    Raises `UserError` if a part could not be read back (it is local to a function, or holds something other than plain
    data), if the folder cannot be written to, or if a file of a run there is a link to elsewhere.
    """
    check_run_folder(folder)
    text = json.dumps({"schema": SCHEMA, "run": encode(run)}, indent=1, allow_nan=False)
    python = f"# For people; {FILE} is what is read back.\n{pretty_repr(run, max_width=100)}\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / PYTHON_FORM, python)
        beside.copy_files(run, folder)
        _replace(folder / FILE, text + "\n")
    except OSError as problem:
        raise not_written("the settings", folder, problem, "Free some space or choose another folder") from problem
    return folder / FILE


def read(folder: Path) -> Run:
    """The `Run` that `write` put into `folder`; equal to the one written.

    Parts of your own are imported only from modules that `allowing` names. A field that the file lacks takes its
    default, if it has one. Raises `UserError` if the folder is not safe to open, or naming the file, the
    path in it, what was expected and what was found.
    """
    check_run_folder(folder)
    path = folder / FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{folder} holds no run: {_missing(folder)}") from None
    except (OSError, ValueError, RecursionError) as problem:
        raise UserError(f"{path} cannot be read: {problem}") from problem
    if not isinstance(content, dict) or content.get("schema") not in range(1, SCHEMA + 1):
        schema = content.get("schema") if isinstance(content, dict) else type(content).__name__
        raise UserError(
            f"{path}: expected settings of schema {SCHEMA} or before, found {schema!r}; read it with the version that"
            " wrote it"
        )
    try:
        run = read_run(content.get("run"), content["schema"])
    except UserError as problem:
        raise UserError(f"{path}: {problem}") from problem
    return beside.beside(run, folder)


def _missing(folder: Path) -> str:
    """What is there in place of a run, and where a run may be."""
    if folder.is_file() and folder.suffix in (".safetensors", *PICKLES):
        return f"it is a file; if it holds weights, write torchvision:NAME={folder} or timm:NAME={folder}"
    if not folder.is_dir():
        what = "it is a file" if folder.exists() else "there is no such folder"
        beside = sorted(path.parent.name for path in folder.parent.glob(f"*/{FILE}"))
        others = f" (runs in {folder.parent}: {_some(beside)})" if beside else ""
        return f"{what}{near_path(folder, FILE) or f'; name the folder given to --out{others}'}"
    if (folder.parent / FILE).is_file():
        return f"there is no {FILE} in it; did you mean {folder.parent}?"
    inside = sorted(path.parent.name for path in folder.glob(f"*/{FILE}"))
    if not inside:
        return f"there is no {FILE} in it. Name the folder given to --out"
    others = f" (runs in it: {_some(inside)})" if len(inside) > 1 else ""
    return f"there is no {FILE} in it; did you mean {folder / inside[0]}?{others}"


def _some(names: Sequence[str], most: int = 8) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def read_run(data: Any, schema: int) -> Run:
    """The run that plain data of this schema describe. It computes what it computed in the version that wrote them.

    Raises `UserError`, with the path, if the data do not describe a run.
    """
    run = decode(data, Run)
    return run if schema > 1 or run.parts == 1 else decode(_of_the_joint_batch(data, run.parts), Run)


def _of_the_joint_batch(data: Any, parts: int) -> Any:
    """Convert groups of BatchNorm, counted within each of `parts` parts of a batch, to groups of the joint batch."""
    if isinstance(data, list):
        return [_of_the_joint_batch(item, parts) for item in data]
    if not isinstance(data, dict):
        return data
    name = str(data.get("part")).rpartition(":")[2]
    if name in ("BatchNorm", "SplitBatchNorm"):
        return {"part": "SplitBatchNorm", "groups": data.get("groups", 1) * parts}
    return {key: _of_the_joint_batch(value, parts) for key, value in data.items()}


def _replace(path: Path, text: str) -> None:
    with atomic_file(path) as file:
        file.write(text.encode())
