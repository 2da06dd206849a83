"""Rows of numbers that are slow to make: made once, kept in a plain .npy file, and read from it when they are used.

A file is first filled as a draft. A note beside the draft says what it holds and how many of its rows are safe on disk,
so that stopped work continues after them and ends with the same bytes.

n: rows   b: rows of one request   row: axes of one row
"""

import contextlib
import fcntl
import io
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from vantage.storage.cache import read_json
from vantage.storage.cache_size import leave_half, make_room
from vantage.storage.files import atomic_file
from vantage.storage.rows_file import RowsFile, open_rows

__all__ = [
    "Rows",
    "draft_of",
    "filled",
    "finish",
    "kept_rows",
    "note_is_left",
    "remove_draft",
    "cached_rows",
    "cache_rows",
]

Rows = Callable[[Int[Tensor, "b"]], Shaped[Tensor, "b *row"]]
"""Returns the rows with these numbers, counted from 0. All have one shape and are on the CPU."""

AT_ONCE = 64
"""Rows that are made together, always in the same groups, so that a matrix product rounds them the same way."""

_SAFE_SECONDS = 5.0
"""Seconds between two notes of what is safe on disk."""


def cached_rows(
    make: Rows,
    count: int,
    file: Path,
    resident: int,
    progress: Callable[[int, int], None] = lambda completed, total: None,
) -> Rows:
    """The same `count` rows as `make` gives, from `file` (.npy) if it holds them, else made once and kept there.

    If they take at most `resident` bytes, they are held in memory; otherwise they are read from the file when they are
    used. If the file cannot be written, or would take more than half of the free disk, rows that do not fit in memory
    are made each time. `progress` gets (rows made, rows in all).
    """
    rows = kept_rows(file, count)
    if rows is None:
        first = make(torch.arange(min(count, 1)))

        def batches(start: int) -> Iterator[Tensor]:
            for numbers in torch.arange(start, count).split(AT_ONCE):
                yield make(numbers)
                progress(int(numbers[-1]) + 1, count)

        rows = cache_rows(file, (count, *first.shape[1:]), first.dtype, {}, batches)
        if rows is None:
            need = count * math.prod(first.shape[1:]) * first.element_size()
            return make if need > resident else _in_memory(torch.cat(list(batches(0))))
    return _in_memory(rows.part(0, count)) if rows.bytes <= resident else rows


def cache_rows(
    file: Path,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    facts: Mapping[str, Any],
    batches: Callable[[int], Iterable[Tensor]],
) -> RowsFile | None:
    """Make rows in a file of the cache, continuing after those of stopped work; None if they cannot be kept.

    Stopped work is continued only if it had the same `facts`; `batches` gives the rows from a number on.
    """
    with contextlib.suppress(OSError):
        with filled(draft_of(file), shape, dtype, facts, batches, sparing=True):
            finish(draft_of(file), file)
    return open_rows(file, shape[0])


def kept_rows(file: Path, count: int) -> RowsFile | None:
    """Rows that were kept earlier, or None if there are none or they are damaged, so that they are made again. The note
    that a process left beside them, killed just after its draft had become the file, is removed."""
    rows, draft = open_rows(file, count), draft_of(file)
    if rows is not None and not draft.exists():
        with contextlib.suppress(OSError):  # the cache is read-only
            _note_of(draft).unlink(missing_ok=True)
    return rows


def draft_of(file: Path) -> Path:
    """The draft that holds a file's rows until all are there."""
    return file.with_name(file.name + ".draft")


@contextmanager
def filled(
    draft: Path,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    facts: Mapping[str, Any],
    batches: Callable[[int], Iterable[Tensor]],
    sparing: bool = False,
) -> Iterator[None]:
    """Append rows to a draft until it holds an array of this shape; then a context in which no other process writes it.

    `batches` gives the rows from a number on. A draft of other facts is started again. Raises `OSError` if there is no
    room or another process is writing it; with `sparing`, also if the rows would take over half of the free disk.
    """
    header, row_bytes = _header(shape, dtype), math.prod(shape[1:]) * dtype.itemsize
    facts = {**facts, "shape": list(shape), "dtype": str(dtype)}
    with _exclusive(draft) as file:
        count, last = _safe_rows(draft, facts, len(header), row_bytes), time.monotonic()
        try:
            if sparing:
                leave_half(draft, row_bytes * (shape[0] - count))
                make_room(draft, len(header) + row_bytes * shape[0])
            if not count:
                _note_of(draft).unlink(missing_ok=True)  # of another draft, and it may fit this one before it is safe
            file.write(header)
            file.truncate(file.seek(len(header) + count * row_bytes))  # rows after the last note may be incomplete
            for rows in batches(count):
                file.write(rows.contiguous().numpy().data)
                count += len(rows)
                if time.monotonic() - last >= _SAFE_SECONDS:
                    _note(file, draft, facts, count)
                    last = time.monotonic()
        except BaseException:
            with contextlib.suppress(OSError):
                if count:
                    _note(file, draft, facts, count)
                else:
                    draft.unlink()
            raise
        _note(file, draft, facts, count)
        yield


def finish(draft: Path, file: Path) -> None:
    """Make a full draft the file."""
    os.replace(draft, file)
    _note_of(draft).unlink(missing_ok=True)


def remove_draft(draft: Path) -> None:
    """Remove a draft that is no longer needed, and the note beside it."""
    draft.unlink(missing_ok=True)
    _note_of(draft).unlink(missing_ok=True)


def note_is_left(draft: Path, facts: Mapping[str, Any] | None = None) -> bool:
    """Whether the note of a draft is there, and if `facts` are given, whether it says so of all rows: a process that is
    killed when it has made the file leaves it."""
    if facts is None:
        return _note_of(draft).is_file()
    note = read_json(_note_of(draft))
    return isinstance(note, dict) and note == {**note, **facts, "rows": facts["shape"][0]}


def _header(shape: tuple[int, ...], dtype: torch.dtype) -> bytes:
    """The header of an .npy file, which precedes the rows."""
    header = io.BytesIO()
    kind = np.lib.format.dtype_to_descr(torch.empty(0, dtype=dtype).numpy().dtype)
    np.lib.format.write_array_header_1_0(header, {"descr": kind, "fortran_order": False, "shape": shape})
    return header.getvalue()


def _note_of(draft: Path) -> Path:
    return draft.with_name(draft.name + ".json")


def _note(file: IO[bytes], draft: Path, facts: Mapping[str, Any], count: int) -> None:
    """Flush the rows to disk, then note that they are there."""
    file.flush()
    os.fsync(file.fileno())
    with atomic_file(_note_of(draft)) as note:
        note.write(json.dumps({**facts, "rows": count}).encode())


def _safe_rows(draft: Path, facts: Mapping[str, Any], header: int, row_bytes: int) -> int:
    """How many rows of a draft with these facts are safe; 0 if there is no such draft."""
    note = read_json(_note_of(draft))
    rows = note.pop("rows", 0) if isinstance(note, dict) else 0
    whole = isinstance(rows, int) and 0 <= rows and header + rows * row_bytes <= draft.stat().st_size
    return rows if note == facts and whole else 0


@contextmanager
def _exclusive(path: Path) -> Iterator[IO[bytes]]:
    """A file to read and write, locked against other processes. Raises `OSError` if another one is writing to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError("another process is writing it") from None
        if not os.path.samestat(os.fstat(file.fileno()), path.stat()):
            raise OSError("another process has just finished it")
        yield file


def _in_memory(rows: Shaped[Tensor, "n *row"]) -> Rows:
    return lambda numbers: rows[numbers]
