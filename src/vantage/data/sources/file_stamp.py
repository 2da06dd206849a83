"""A file that is read piece by piece while a source is in use must stay as it was when the source was opened."""

import os
from dataclasses import dataclass
from pathlib import Path

from vantage.errors import DataError

__all__ = ["FileStamp"]


@dataclass(frozen=True)
class FileStamp:
    """A file, and what it looked like when it was opened."""

    path: Path
    """The file."""

    state: tuple[int, int]
    """Its size in bytes, and its modification time in nanoseconds."""

    @classmethod
    def now(cls, path: Path, descriptor: int | None = None) -> "FileStamp":
        """The file as it is, by its path or by a descriptor that was opened. Raises `OSError`."""
        state = os.stat(path if descriptor is None else descriptor)
        return cls(path, (state.st_size, state.st_mtime_ns))

    def check(self, descriptor: int | None = None) -> None:
        """Raises `DataError` if the file is no longer as it was: other images would be read under the old numbers, and
        a mapped file that became shorter would end the process."""
        try:
            same = FileStamp.now(self.path, descriptor) == self
        except OSError as problem:
            raise DataError(f"{self.path} disappeared while it was in use: {problem.strerror}") from problem
        if not same:
            raise DataError(f"{self.path} changed while it was in use: start again, it is then read anew")
