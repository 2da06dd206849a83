"""Detects whether a file that a source reads piece by piece has changed since the source was opened."""

import os
from dataclasses import dataclass
from pathlib import Path

from vantage.errors import DataError

__all__ = ["FileStamp"]


@dataclass(frozen=True)
class FileStamp:
    """A file, and its state when it was opened."""

    path: Path
    """The file, whatever the working folder will be."""

    state: tuple[int, int]
    """Its size in bytes, and its modification time in nanoseconds."""

    @classmethod
    def now(cls, path: Path, descriptor: int | None = None) -> "FileStamp":
        """The file in its present state, from its path or from an open descriptor. Raises `OSError`."""
        state = os.stat(path if descriptor is None else descriptor)
        return cls(path.absolute(), (state.st_size, state.st_mtime_ns))

    def check(self, descriptor: int | None = None) -> None:
        """Raises `DataError` if the file has changed: other images would be read under the old numbers, and a mapped
        file that became shorter would crash the process."""
        try:
            same = FileStamp.now(self.path, descriptor) == self
        except OSError as problem:
            raise DataError(f"{self.path} disappeared while it was in use: {problem.strerror}") from problem
        if not same:
            raise DataError(f"{self.path} changed while it was in use: start again to read it anew")
