"""The standard streams of a command, of which a full disk may take the rest."""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any, TextIO, cast

__all__ = ["FULL", "discard", "usable_streams"]

FULL = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a full disk."""


class _Notes:
    """Standard error, a stream of text. A command does not depend on its notes, so where they find no room, the rest is
    dropped."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        try:
            return self._stream.write(text)
        except OSError as problem:
            self._drop(problem)
            return len(text)

    def flush(self) -> None:
        """Write what is buffered, or drop it."""
        try:
            self._stream.flush()
        except OSError as problem:
            self._drop(problem)

    def _drop(self, problem: OSError) -> None:
        if problem.errno not in FULL:
            raise problem
        discard(self._stream)


def discard(stream: Any) -> None:
    """Drop what a stream still holds and what follows; it would be written again when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _open_closed() -> None:
    """Open standard streams that are closed: the next file would take their place, and be printed into."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    for number, name in enumerate(("stdout", "stderr"), 1):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", closefd=False))


@contextmanager
def usable_streams() -> Iterator[None]:
    """A context in which a terminal shows ? for a character that it lacks, notes need no room on a disk, and what is
    printed to a stream that is closed (`>&-` in a shell) is dropped."""
    _open_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    with redirect_stderr(cast(TextIO, _Notes(sys.stderr))):
        yield
