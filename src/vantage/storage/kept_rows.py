"""Rows of numbers that are slow to make: made once, kept in a file, read from it row by row where they do not fit.

n: rows   b: rows asked for at once   row: axes of one
"""

import math
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from vantage.errors import DataError
from vantage.progress import Progress
from vantage.storage.files import written_whole

__all__ = ["Rows", "kept_rows"]

_AT_ONCE = 64
"""Rows that are made at once, always the same ones together, so that a matrix product rounds them the same way."""

Rows = Callable[[Int[Tensor, "b"]], Shaped[Tensor, "b *row"]]
"""By their numbers from 0, rows of one shape, on the CPU."""


def kept_rows(make: Rows, count: int, file: Path, resident: int, progress: Progress, what: str) -> Rows:
    """The same `count` rows as `make` gives, from `file` (.npy) if it holds them, else made once and kept there.

    Up to `resident` bytes of them are held in memory, more are read from the file as they are asked for. The file
    appears whole or not at all. Where it cannot be written, or would take more than half of what is free on the disk,
    rows that do not fit in memory are made each time. `what` is told, with how many are made.
    """
    known = _opened(file, count)
    if known is None:
        first = make(torch.arange(min(count, 1)))
        need = count * first.numel() * first.element_size()
        known = _written(make, count, file, need, progress, what)
        if known is None:
            return make if need > resident else _held(torch.cat(list(_in_order(make, count, progress, what))))
    return _held(known(torch.arange(count))) if known.bytes <= resident else known


class _InFile:
    """Rows of a plain array in a file, read and not mapped: mapped pages would count as memory in use."""

    def __init__(self, path: Path, count: int) -> None:
        """Raises `ValueError` for what is no such array, or not whole; `OSError` where there is no file."""
        with path.open("rb") as file:
            if np.lib.format.read_magic(file) != (1, 0):
                raise ValueError("another version")
            shape, fortran, self.kind = np.lib.format.read_array_header_1_0(file)
            self.path, self.row, self.start = path, shape[1:], file.tell()
            self.row_bytes = math.prod(self.row) * self.kind.itemsize
            self.bytes = count * self.row_bytes
            whole = self.start + self.bytes == os.fstat(file.fileno()).st_size
        if fortran or self.kind.hasobject or shape[:1] != (count,) or not whole:
            raise ValueError("other rows")

    def __call__(self, numbers: Int[Tensor, "b"]) -> Shaped[Tensor, "b *row"]:
        found = np.empty((len(numbers), self.row_bytes), np.uint8)
        try:
            with self.path.open("rb") as file:
                for number, row in zip(numbers.tolist(), found, strict=True):
                    file.seek(self.start + number * self.row_bytes)
                    if file.readinto(row.data) != self.row_bytes:
                        raise OSError("it was cut short")
        except OSError as problem:
            words = f"{self.path} changed while it was in use ({problem.strerror or problem})"
            raise DataError(f"{words}: run the same again, it is then made anew") from problem
        return torch.from_numpy(found.view(self.kind).reshape(len(found), *self.row))


def _opened(path: Path, count: int) -> _InFile | None:
    """Rows kept earlier, or None where there are none or they are damaged: then they are made again."""
    try:
        return _InFile(path, count)
    except (OSError, ValueError, EOFError):
        return None


def _written(make: Rows, count: int, path: Path, need: int, progress: Progress, what: str) -> _InFile | None:
    """Make rows into a file; None where it cannot be had."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if 2 * need > shutil.disk_usage(path.parent).free:
            return None
        with written_whole(path) as file:
            for number, rows in enumerate(_in_order(make, count, progress, what)):
                if not number:
                    kind = np.lib.format.dtype_to_descr(rows.numpy().dtype)
                    header = {"descr": kind, "fortran_order": False, "shape": (count, *rows.shape[1:])}
                    np.lib.format.write_array_header_1_0(file, header)
                file.write(rows.contiguous().numpy().data)
    except OSError:
        return None
    return _opened(path, count)


def _in_order(make: Rows, count: int, progress: Progress, what: str) -> Iterator[Shaped[Tensor, "_ *row"]]:
    """Some rows at a time, from first to last."""
    progress.start(what, count)
    try:
        for numbers in torch.arange(count).split(_AT_ONCE):
            yield make(numbers)
            progress.advance(int(numbers[-1]) + 1)
    finally:
        progress.stop()


def _held(rows: Shaped[Tensor, "n *row"]) -> Rows:
    return lambda numbers: rows[numbers]
