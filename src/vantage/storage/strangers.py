"""Folders that a stranger may have filled are checked before anything in them is opened.

A link could lead reads and writes out of the folder, a pipe keeps its reader waiting, and a device has no end. The
folder itself may be a link, since its user named it.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from vantage.errors import UserError

__all__ = ["JSON_BYTES", "RUN_NAMES", "TOGETHER_BYTES", "check_content", "check_file", "check_run_folder"]

JSON_BYTES = 64 * 2**20
"""Largest size of a JSON file, including a run's metrics (a line of a few hundred bytes for each epoch)."""

TOGETHER_BYTES = 4 * JSON_BYTES
"""Largest size of all JSON files of a folder together."""

RUN_NAMES = (
    *("settings.json", "settings.py.txt", "metrics.jsonl", "provenance.json", "done.json", "views-*.safetensors"),
    *("view_learning.json", "last.safetensors", "best.safetensors"),
    *("checkpoint", "events", "evaluations", "analyses", "report", "report.html", "benefit"),
    *("backbone-*", "detectron2*"),
)
"""What Vantage reads or writes in the folder of a run or of learned views, unless a file is named. Anything else there
is the user's own."""

_JSON, _FILES = (".json", ".jsonl"), (".json", ".jsonl", ".safetensors", ".parquet")


def check_run_folder(folder: Path) -> None:
    """Check the folder of a run or of learned views; see `check_content`."""
    check_content(folder, RUN_NAMES)


def check_content(folder: Path, names: Sequence[str] = ("*",), together: int = TOGETHER_BYTES) -> None:
    """Raises `UserError` unless everything with these names in a folder, and everything below it, is a file or a folder
    inside that folder, each JSON file is small enough to be read, and all of them together have at most `together`
    bytes. A folder that does not exist has nothing in it."""
    root = os.path.realpath(folder)
    size = sum(_checked_size(entry, root) for entry in _walk(folder, names))
    if size > together:
        raise UserError(
            f"the JSON files in {folder} have {size:,} bytes, more than {together:,}: if Vantage wrote this"
            " folder, move some of its results elsewhere"
        )


def check_file(path: Path) -> None:
    """Raises `UserError` for a JSON file, or a link to it, that is a pipe or a device, or is too large. A
    file that does not exist is left to its reader."""
    if path.exists() and not path.is_dir():
        if not path.is_file():
            raise UserError(f"{path} is a pipe or a device: name a file")
        _check_size(str(path), path.stat().st_size)


def _checked_size(entry: os.DirEntry[str], root: str) -> int:
    """Check an entry, and return its size if it is a JSON file, else 0."""
    path, name = entry.path, entry.name.lower()
    try:
        facts = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # a process that trains the run has just renamed it
        return 0
    if stat.S_ISLNK(facts.st_mode):
        target = os.path.realpath(path)
        if os.path.commonpath([root, target]) != root or not os.path.isfile(target):
            raise UserError(
                f"{path} is a link that leads to no file of its folder: if you trust what it leads to, put that in"
                " its place, else remove the link"
            )
        facts = os.stat(target)
    elif stat.S_ISDIR(facts.st_mode):
        if name.endswith(_FILES):
            raise UserError(f"{path} is a folder where a file belongs: remove it")
        return 0
    elif not stat.S_ISREG(facts.st_mode):
        raise UserError(f"{path} is a pipe or a device where a file belongs: remove it")
    if not name.endswith(_JSON):
        return 0
    _check_size(path, facts.st_size)
    return facts.st_size


def _check_size(path: str, size: int) -> None:
    if size > JSON_BYTES:
        raise UserError(f"{path} has {size:,} bytes, and no such file that Vantage wrote has more than {JSON_BYTES:,}")


def _walk(folder: Path, names: Sequence[str]) -> Iterator[os.DirEntry[str]]:
    """The entries of these names, and everything below them; links are not followed."""
    entries = [entry for entry in _entries(folder) if any(fnmatchcase(entry.name, name) for name in names)]
    while entries:
        entry = entries.pop()
        yield entry
        if entry.is_dir(follow_symlinks=False):
            entries += _entries(entry.path)


def _entries(folder: Path | str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as problem:
        raise UserError(f"the folder {folder} cannot be read: {problem.strerror}") from problem
