"""A complete .npy file whose rows are read when they are used.

n: rows   b: rows of one request   row: axes of one row
"""

import math
import mmap
import os
import sys
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from vantage.errors import DataError
from vantage.storage.cache_size import in_use
from vantage.storage.quiet import quiet_headers

__all__ = ["RowsFile", "open_rows"]


_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0x40)  # named from Python 3.13 on
_PRIVATE = mmap.MAP_PRIVATE | _NO_RESERVE
"""Without a reserve of memory for rows that might be written to: Linux would refuse a file larger than the memory."""


class RowsFile:
    """Rows in a complete file. They are read, not memory-mapped, since mapped pages would count as memory in use.

    The file is open until nothing refers to the rows, or to a memory map of them, any longer: a file of the cache stays
    as long, and one that is removed by hand can still be read. Threads and forked processes may share it.
    """

    def __init__(self, path: Path, count: int) -> None:
        """Raises `ValueError` for anything but a complete array of this many rows, `OSError` if there is no file."""
        self._file = in_use(path)
        if np.lib.format.read_magic(self._file) != (1, 0):
            raise ValueError("another version")
        shape, fortran, self.dtype = np.lib.format.read_array_header_1_0(self._file)
        self.path, self.row, self.start = path, shape[1:], self._file.tell()
        self.row_bytes = math.prod(self.row) * self.dtype.itemsize
        self.count, self.bytes = count, count * self.row_bytes
        complete = self.start + self.bytes == os.fstat(self._file.fileno()).st_size
        if fortran or self.dtype.hasobject or shape[:1] != (count,) or not complete:
            raise ValueError("other rows")

    def __reduce__(self) -> tuple[type["RowsFile"], tuple[Path, int]]:
        """The path and the number of rows: another process opens the file itself."""
        return RowsFile, (self.path, self.count)

    def __del__(self) -> None:
        if file := getattr(self, "_file", None):
            file.close()

    def __call__(self, numbers: Int[Tensor, "b"]) -> Shaped[Tensor, "b *row"]:
        """The rows with these numbers."""
        rows = np.empty((len(numbers), self.row_bytes), np.uint8)
        for number, row in zip(numbers.tolist(), rows, strict=True):
            self._read(number, row)
        return self._as_tensor(rows)

    def part(self, first: int, count: int) -> Shaped[Tensor, "_ *row"]:
        """`count` consecutive rows, from number `first` on."""
        rows = np.empty((count, self.row_bytes), np.uint8)
        self._read(first, rows.reshape(-1))
        return self._as_tensor(rows)

    def memory_map(self) -> Shaped[Tensor, "n *row"]:
        """All rows, memory-mapped: the system reads them when they are used and drops them when memory is short.
        Writing to them does not change the file."""
        if not self.bytes:
            return self.part(0, self.count)
        writable = mmap.PROT_READ | mmap.PROT_WRITE
        whole = mmap.mmap(self._file.fileno(), 0, _PRIVATE, writable)  # which keeps the file open and locked
        rows = np.frombuffer(whole, self.dtype, math.prod((self.count, *self.row)), self.start)
        return torch.from_numpy(rows.reshape(self.count, *self.row))

    def _read(self, first: int, rows: np.ndarray) -> None:
        """Fill a line of bytes with those of consecutive rows. Raises `DataError` if the file was cut short."""
        start, rest = self.start + first * self.row_bytes, rows.data
        try:
            while rest:  # the system reads at most 2 GiB at once
                size = os.preadv(self._file.fileno(), [rest], start)
                if not size:
                    raise OSError("it was cut short")
                start, rest = start + size, rest[size:]
        except OSError as problem:
            words = f"{self.path} changed while it was in use ({problem.strerror or problem})"
            raise DataError(f"{words}: run the same again to make it anew") from problem

    def _as_tensor(self, rows: np.ndarray) -> Shaped[Tensor, "_ *row"]:
        return torch.from_numpy(rows.view(self.dtype).reshape(len(rows), *self.row))


def open_rows(path: Path, count: int) -> RowsFile | None:
    """Rows kept earlier, or None if there are none or they are damaged, so that they are made again."""
    try:
        with quiet_headers():
            return RowsFile(path, count)
    except Exception:  # NumPy's reader of headers fails with many kinds of error
        return None
