"""The standard streams of a command, made safe against full disks and closed streams."""

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
    """Standard error, from which the rest is dropped once its disk is full, since a command does not depend on its
    notes."""

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
    """Drop a stream's buffer and all later output; Python would otherwise write the buffer again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _open_closed() -> None:
    """Open closed standard streams on the null device; else the next file would get their number, and the output."""
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
    """A context in which characters that an encoding lacks are printed as ?, notes are dropped if their disk is full,
    and output to a closed stream (`>&-` in a shell) is dropped."""
    _open_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    with redirect_stderr(cast(TextIO, _Notes(sys.stderr))):
        yield
