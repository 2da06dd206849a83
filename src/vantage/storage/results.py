"""Finished results that need not be made again: in the cache, or in a folder that belongs to one piece of work."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from vantage.errors import UserError
from vantage.storage.cache import read_cached, try_write_json
from vantage.storage.files import write_json
from vantage.storage.strangers import check_content
from vantage.storage.unfinished import unfinished_name

__all__ = ["CachedResults", "ResultsFile", "differences", "refuse_others"]

T = TypeVar("T")

_SCHEMA = 1
"""Version of the file's format; increased when an older reader would misread a newer file."""


class CachedResults:
    """Plain data by key in a JSON file of the cache, whose name depends on everything that the results depend on.

    A damaged file counts as none, and a cache that cannot be written costs time later but is no error.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        content = read_cached(file)
        self._results: dict[str, Any] = content if isinstance(content, dict) else {}

    def __contains__(self, key: str) -> bool:
        return key in self._results

    def __getitem__(self, key: str) -> Any:
        return self._results[key]

    def add(self, key: str, result: Any) -> None:
        """Keep one more result."""
        self._results[key] = result
        try_write_json(self.file, self._results)


def refuse_others(file: Path, what: str) -> None:
    """Raises `UserError` if the file of results does not exist but its folder holds anything else, or if the folder is
    not safe to open."""
    folder = file.parent
    check_content(folder)
    # A process that was killed while it wrote the first result leaves only this, and the same call goes on.
    started = unfinished_name(file.name)
    if file.exists() or not folder.exists():
        return
    if not folder.is_dir() or any(path.name != started for path in folder.iterdir()):
        raise UserError(f"{folder} is not empty and holds no {what}: name another folder, or a new one")


class ResultsFile(Generic[T]):
    """Results by key in a JSON file of their own folder, all made under the same settings; written after each."""

    def __init__(
        self,
        file: Path,
        about: Mapping[str, Any],
        what: str,
        read: Callable[[dict[str, Any]], T],
        plain: Callable[[T], Mapping[str, Any]],
    ) -> None:
        """`about` holds everything that must be the same for results to belong together, as plain data; `what` names
        the work. `plain` turns a result into plain data, and `read` is its inverse.

        Raises `UserError` if the folder holds other results, damaged ones, or anything else, or is not safe to open.
        """
        self.file, self.about, self._what, self._plain = file, json.loads(json.dumps(about)), what, plain
        self._results: dict[str, T] = {}
        refuse_others(file, what)
        if file.exists():
            self._results = self._read(read)

    def __contains__(self, key: str) -> bool:
        return key in self._results

    def __getitem__(self, key: str) -> T:
        return self._results[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def add(self, key: str, result: T) -> None:
        """Keep one more result, on disk too."""
        self._results[key] = result
        self.write()

    def write(self) -> None:
        """Write the results so far; from then on the folder belongs to this work."""
        rows = [{"key": key, **self._plain(result)} for key, result in self._results.items()]
        write_json(self.file, {"schema": _SCHEMA, **self.about, "rows": rows})

    def _read(self, read: Callable[[dict[str, Any]], T]) -> dict[str, T]:
        try:
            content = json.loads(self.file.read_text())
            schema, rows = content.pop("schema"), content.pop("rows")
            if schema != _SCHEMA:
                raise UserError(f"{self.file} was written by another version: name another folder")
            results = {row["key"]: read(dict(row)) for row in rows}
        except UserError:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as problem:
            raise UserError(f"{self.file} is damaged ({problem}): name another folder") from problem
        if results:  # without any, nothing is lost if other work takes over the folder
            self._check(content)
        return results

    def _check(self, old_facts: Any) -> None:
        if changes := differences(old_facts, self.about):
            path, old, new = changes[0]
            more = f", and {len(changes) - 1} more differ" if len(changes) > 1 else ""
            raise UserError(
                f"{self.file.parent} holds another {self._what}: {path} is {old!r} there, {new!r} was asked for{more};"
                " name another folder"
            )


def differences(before: Any, after: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Where two plain values differ: the path, and the value on each side."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = dict.fromkeys([*before, *after])
        pairs = [(name, before.get(name), after.get(name)) for name in names]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(str(number), *pair) for number, pair in enumerate(zip(before, after, strict=True))]
    else:
        return [] if before == after else [(path, before, after)]
    return [change for name, a, b in pairs for change in differences(a, b, f"{path}.{name}" if path else name)]
