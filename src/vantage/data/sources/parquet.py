"""Images in Parquet files of the Hugging Face layout: a column `image` of {bytes, path}, optionally a column `label`.

h, w: height and width in pixels
"""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import UInt8
from torch import Tensor

from vantage.data.decode import MAX_PIXELS, decode
from vantage.data.sources.file_stamp import FileStamp
from vantage.data.sources.named_twice import named_twice
from vantage.data.sources.parquet_columns import columns_of
from vantage.data.sources.source import read_some, stamp_of_files
from vantage.errors import DataError, UnreadableImage
from vantage.machine.allocator import memory_of
from vantage.storage.cache import hash_of

_GROUPS_KEPT = 16
_MOST_CLASSES = 1_000_000
_LABEL_BYTES = 64
"""Bytes of memory for each label while the labels are numbered."""


class Parquet:
    """The rows of one or more Parquet files, in the order given. `twice` holds both names of each file that is named
    twice; it counts once. `beside` counts the images in their folder, which are left out.

    Row groups are read as they are needed, and the last 16 are kept in memory, or fewer if they would take more than a
    quarter of it. Reading in random order is fast if all groups fit, or if groups are small (Hugging Face writes about
    100 rows); otherwise each image costs a whole group. Files are refused if an unpacked group takes more than a
    quarter of the memory, or if the labels of all rows do.
    """

    def __init__(self, paths: tuple[Path, ...], max_pixels: int = MAX_PIXELS, beside: int = 0) -> None:
        states = [path.exists() and FileStamp.now(path).state for path in paths]
        again = named_twice(list(map(str, paths)), states)
        self.twice = [(paths[earlier].name, paths[number].name) for number, earlier in again.items()]
        paths = tuple(path for number, path in enumerate(paths) if number not in again)
        self.paths = tuple(path.absolute() for path in paths)
        self.max_pixels, self.beside = max_pixels, beside
        self._files: dict[int, pq.ParquetFile] = {}
        self._stamps: dict[int, FileStamp] = {}
        self._groups: OrderedDict[int, pa.ChunkedArray] = OrderedDict()
        starts, where, labels = [0], [], []
        for number, path in enumerate(paths):
            try:
                self._stamps[number] = FileStamp.now(path)
                file = self._file(number)
                columns = columns_of(file.schema_arrow, path)
                if number == 0:
                    self._columns, self.classes = columns, columns.classes
                elif not columns.agree(self._columns):
                    raise DataError(
                        f"{path} has {columns}, but {paths[0]} has {self._columns}: files of one set must agree"
                    )
                _check_sizes(file.metadata, path)
                for group in range(file.metadata.num_row_groups):
                    starts.append(starts[-1] + file.metadata.row_group(group).num_rows)
                    where.append((number, group))
                if columns.label:
                    groups = range(file.metadata.num_row_groups)
                    labels.append(_read(file, groups, columns.label, path, _most_bytes() // 8).combine_chunks())
            except (OSError, pa.ArrowException, UnicodeError) as error:
                raise DataError(f"cannot read {path} as a Parquet file: {error}") from error
        if starts[-1] == 0:
            raise DataError(f"no images in {paths[0]}: the table has no rows")
        self._starts = np.array(starts, dtype=np.int64)
        self._where = where
        self._labels = self._number_labels(labels, starts[-1])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getstate__(self) -> dict[str, Any]:
        """The state without open files: another process opens its own."""
        return self.__dict__ | {"_files": {}, "_groups": OrderedDict()}

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`."""
        return decode(self.file_bytes(number), self.name(number), self.max_pixels)

    def file_bytes(self, number: int) -> bytes:
        """The bytes of one image; raises `UnreadableImage` if the cell is empty or cannot be read, `DataError` if
        the file changed since it was opened."""
        group = int(np.searchsorted(self._starts, number, side="right")) - 1
        try:
            cell = self._group(group)[number - int(self._starts[group])]
            # Only the bytes: the path beside them may not be valid text.
            data = (cell["bytes"] if isinstance(cell, pa.StructScalar) and cell.is_valid else cell).as_py()
        except (OSError, pa.ArrowException, IndexError) as error:
            raise UnreadableImage(self.name(number), f"its row group cannot be read ({error})") from error
        if data is None:
            raise UnreadableImage(self.name(number), "its cell holds no bytes")
        return data

    def label(self, number: int) -> int | None:
        """The index of the image's class, or None."""
        return None if self._labels[number] < 0 else int(self._labels[number])

    def name(self, number: int) -> str:
        """The image's row, counted through all files."""
        return f"row {number}"

    def fingerprint(self) -> str:
        """A hash of the number of rows, all labels, and the bytes of at most 32 images evenly spaced."""
        facts = [str(len(self)).encode(), "\n".join(self.classes).encode(), self._labels.tobytes()]
        return hash_of([*facts, *read_some(len(self), self.file_bytes)])

    def stamp(self) -> str:
        """A hash of the size and modification time of every file."""
        return stamp_of_files(self.paths)

    def _file(self, number: int) -> pq.ParquetFile:
        if number not in self._files:
            # Memory-mapped, since a descriptor shared through a fork would share its position.
            self._files[number] = pq.ParquetFile(self.paths[number], memory_map=True)
        return self._files[number]

    def _group(self, group: int) -> pa.ChunkedArray:
        if group in self._groups:
            self._groups.move_to_end(group)
        else:
            file, inner = self._where[group]
            self._stamps[file].check()
            self._groups[group] = _read(self._file(file), [inner], self._columns.image, self.paths[file], _most_bytes())
            while len(self._groups) > 1 and (
                len(self._groups) > _GROUPS_KEPT or sum(group.nbytes for group in self._groups.values()) > _most_bytes()
            ):
                self._groups.popitem(last=False)
        return self._groups[group]

    def _number_labels(self, labels: list[pa.Array], count: int) -> "np.ndarray":
        """Labels as numbers, −1 for none. Sets `classes`."""
        if not labels:
            return np.full(count, -1, dtype=np.int32)
        values = self._values(labels)
        if len(values) != count:
            raise DataError(f"{self.paths[0]} states {count} rows and has {len(values)} labels: the file is damaged")
        self.classes = self._classes_of(values)
        index = {name: number for number, name in enumerate(self.classes)}
        numbers = [-1 if v is None else index[v] if isinstance(v, str) else max(int(v), -1) for v in values]
        return np.array(numbers, dtype=np.int32)

    def _classes_of(self, values: list[Any]) -> tuple[str, ...]:
        """The classes of labels: words in sorted order; for numbers, the names in the metadata or, without these, the
        numbers as words. Raises `DataError` for other labels, and for a number that is too large."""
        if words := {value for value in values if isinstance(value, str)}:
            if not all(isinstance(value, str | None) for value in values):
                raise DataError(f"labels in {self.paths[0]} and beside it are words in some files, numbers in others")
            return tuple(sorted(words))
        if not all(value is None or isinstance(value, int) for value in values):
            raise DataError(f"the column {self._columns.label} of {self.paths[0]} holds neither integers nor words")
        largest = max((int(value) for value in values if value is not None), default=-1)
        most = len(self.classes) or _MOST_CLASSES
        if largest >= most:
            raise DataError(f"a label of {self.paths[0]} is {largest}: classes are numbered from 0 to {most - 1}")
        return self.classes or tuple(str(number) for number in range(1 + largest))

    def _values(self, labels: list[pa.Array]) -> list[Any]:
        """The labels of all rows. Raises `DataError` if one is not valid text."""
        try:
            return [value for array in labels for value in array.to_pylist()]
        except (UnicodeError, pa.ArrowException) as error:
            raise DataError(f"the column {self._columns.label} of {self.paths[0]} cannot be read: {error}") from error


def has_images(path: Path) -> bool:
    """Whether a Parquet file has a column of images; True for a damaged one, of which the reader gives the reason."""
    try:
        columns_of(pq.read_schema(path), path)
    except DataError:
        return False
    except (OSError, pa.ArrowException, UnicodeError):
        pass
    return True


def _most_bytes() -> int:
    """A quarter of the machine's memory."""
    return memory_of("cpu") // 4


def _check_sizes(metadata: Any, path: Path) -> None:
    """Raises `DataError` if, by the footer of a file, a row group or all labels take too much memory."""
    most = _most_bytes()
    for group in range(metadata.num_row_groups):
        size = metadata.row_group(group).total_byte_size
        if size > most:
            raise DataError(
                f"the row group {group} of {path} takes {size / 2**30:,.1f} GiB unpacked, more than a quarter of this"
                f" machine's memory ({4 * most / 2**30:,.1f} GiB): write the file again with smaller row groups"
            )
    if metadata.num_rows * _LABEL_BYTES > most:
        raise DataError(
            f"{path} states {metadata.num_rows:,} rows, whose labels take more than a quarter of this machine's memory"
            f" ({4 * most / 2**30:,.1f} GiB): split the set, and give its parts one by one"
        )


def _read(file: pq.ParquetFile, groups: Sequence[int], column: str, path: Path, most: int) -> pa.ChunkedArray:
    """A column of some row groups, read in batches that fit in memory: repeated values take little room in the file,
    but much more than the footer says once they are unpacked. Raises `DataError` if the column has more than `most`
    bytes."""
    largest = max((file.metadata.row_group(group).total_byte_size for group in groups), default=0)
    batches, size = [], 0
    # One thread: Arrow's own threads do not survive in a forked worker.
    for batch in file.iter_batches(max(1, most // max(1, largest)), groups, [column], use_threads=False):
        batches.append(batch.column(0))
        size += batch.nbytes
        if size > most:
            raise DataError(
                f"the column {column} of {path} takes more than {most / 2**30:,.1f} GiB at once when it is unpacked, a"
                " fixed share of this machine's memory: write the file again with smaller row groups"
            )
    return pa.chunked_array(batches, file.schema_arrow.field(column).type)
