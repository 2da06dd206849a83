"""Tar files in webdataset's layout, read in place: any number of images with little memory.

h, w: height and width in pixels   s: shards + 1
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from vantage import processes
from vantage.data.decode import MAX_PIXELS, decode
from vantage.data.sources.hidden import hidden_words
from vantage.data.sources.named_twice import named_twice
from vantage.data.sources.shards.descriptor import Descriptor
from vantage.data.sources.shards.facts import read_facts, write_facts
from vantage.data.sources.shards.index import Facts, Index, cached_index, state_of
from vantage.data.sources.source import read_some, stamp_of_files
from vantage.errors import DataError, UnreadableImage, quantity
from vantage.storage.cache import hash_of

__all__ = ["Shards"]

_OPEN, _INDEXES = 64, 1024  # shards kept open, and indexes kept mapped


class Shards:
    """The images of tar shards (`index.py` describes their layout), shard by shard in the order of their names.

    Headers are read once: a row of about 30 bytes for each image lies in the cache and is memory-mapped, so that any
    image is one read at a known offset, and worker processes share the pages. Several processes share the indexing.
    One more file in the cache holds what is needed to open the set again.
    An epoch's order shuffles the shards, and images among neighboring shards (`vantage.data.order`).

    `packed` are the names of compressed tars beside the shards, and `beside` counts the images there; both are left
    out. `twice` holds both names of each shard that is named twice; it counts once.

    Raises `DataError` for a shard that is missing, damaged, compressed or empty, and for keys that occur twice.
    """

    def __init__(
        self,
        paths: Sequence[str],
        cache: Path,
        max_pixels: int = MAX_PIXELS,
        progress: Callable[[int, int], None] | None = None,
        packed: Sequence[str] = (),
        beside: int = 0,
    ) -> None:
        self.max_pixels, self.packed, self.beside = max_pixels, packed, beside
        self._paths, self._cache = tuple(map(os.path.abspath, paths)), cache
        self._root = os.path.commonpath([os.path.dirname(path) for path in self._paths])
        self._states = [state_of(path) for path in self._paths]
        again = named_twice(self._paths, self._states)
        self.twice = [(self._name(earlier), self._name(number)) for number, earlier in again.items()]
        once = [number for number in range(len(self._paths)) if number not in again]
        self._paths, self._states = tuple(self._paths[n] for n in once), [self._states[n] for n in once]
        self._uncached: dict[int, Index] = {}  # if the cache cannot be written
        facts = self._collect_facts(progress)
        self.hidden = sum((Counter(each.hidden) for each in facts), Counter[str]())
        self.unread = sum((Counter(each.unread) for each in facts), Counter[str]())
        self._starts = np.cumsum([0, *(each.count for each in facts)], dtype=np.int64)
        if not len(self):
            but = f", except {words}, which are left out" if (words := hidden_words(self.hidden)) else ""
            raise DataError(
                f"no images in {quantity(len(paths), 'shard')}, the first of which is {paths[0]}{but}. A sample is an"
                " image such as KEY.jpg, with KEY.cls or KEY.json if it has a label"
            )
        self._digest = hash_of(
            f"{self._name(n)} {each.digest}".encode("utf-8", "surrogateescape") for n, each in enumerate(facts)
        )
        self.classes, self._label_of_word = _classes(facts, self._paths)
        self._start_reading()

    def _start_reading(self) -> None:
        self._open = lru_cache(_OPEN)(self._open_shard)
        self._index = lru_cache(_INDEXES)(self._load_index)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getstate__(self) -> dict[str, Any]:
        """The state without open shards and indexes: another process opens its own."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_open", "_index")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start_reading()

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`."""
        return decode(self.file_bytes(number), self.name(number), self.max_pixels)

    def file_bytes(self, number: int) -> bytes:
        """The bytes of one image; raises `UnreadableImage` if the shard cannot be read there, `DataError` if it is not
        the file that was indexed."""
        shard, row = self._find(number)
        start, size = int(row["block"]) << 9, int(row["size"])
        try:
            # Read at an offset, without moving the position: threads and forked workers may share the descriptor.
            file = self._open(shard)
            content = os.pread(file.number, size, start)
        except OSError as error:
            raise UnreadableImage(self.name(number), error.strerror or str(error)) from error
        if len(content) < size:
            raise UnreadableImage(self.name(number), "the shard has been cut short")
        file.check()
        return content

    def label(self, number: int) -> int | None:
        """The index of the image's class, or None."""
        shard, row = self._find(number)
        label = int(row["label"])
        if label < 0:
            return None
        words = self._index(shard).facts.words
        return self._label_of_word[words[label]] if words else label

    def name(self, number: int) -> str:
        """The shard's path below the folder that all share, and the image's path in it."""
        shard, row = self._find(number)
        return f"{self._name(shard)}/{os.fsdecode(bytes(row['name']))}"

    def blocks(self) -> Int[Tensor, "s"]:
        """The number of the first image of each shard, and the number of images: how the set is best read."""
        return torch.from_numpy(self._starts)

    def fingerprint(self) -> str:
        """A hash of all names, sizes and labels, and of the bytes of at most 32 images evenly spaced."""
        return hash_of([self._digest.encode(), *read_some(len(self), self.file_bytes)])

    def stamp(self) -> str:
        """A hash of the size and modification time of every shard."""
        return stamp_of_files(self._paths)

    def _find(self, number: int) -> tuple[int, Any]:
        """The shard that an image lies in, and its row there."""
        if not 0 <= number < len(self):
            raise IndexError(f"image {number} of {len(self)}")
        shard = int(np.searchsorted(self._starts, number, side="right")) - 1
        return shard, self._index(shard).rows[number - int(self._starts[shard])]

    def _name(self, shard: int) -> str:
        return os.path.relpath(self._paths[shard], self._root)

    def _collect_facts(self, progress: Callable[[int, int], None] | None) -> list[Facts]:
        """The facts of every shard: from the one file that holds them all or, if missing there, from the index of the
        shard. Each process begins at a different shard, and reuses what the others have already indexed."""
        count, facts = len(self._paths), read_facts(self._paths, self._states, self._cache)
        first, missing = count * processes.rank() // processes.count(), None in facts
        for number, shard in enumerate([*range(first, count), *range(first)], 1):
            if facts[shard] is None:
                facts[shard] = self._load_index(shard).facts
            if progress is not None:
                progress(number, count)
        whole = [each for each in facts if each is not None]
        if missing and processes.rank() == 0:
            write_facts(self._paths, self._states, whole, self._cache)
        return whole

    def _load_index(self, shard: int) -> Index:
        if shard in self._uncached:
            return self._uncached[shard]
        index = cached_index(self._paths[shard], self._states[shard], self._cache)
        if not isinstance(index.rows, np.memmap):
            self._uncached[shard] = index
        return index

    def _open_shard(self, shard: int) -> Descriptor:
        return Descriptor(self._paths[shard], self._states[shard])


def _classes(facts: Sequence[Facts], paths: Sequence[str]) -> tuple[tuple[str, ...], dict[str, int]]:
    """The names of the classes, and the number of each word, or {} if the labels are numbers."""
    with_words = [number for number, each in enumerate(facts) if each.words]
    with_numbers = [number for number, each in enumerate(facts) if each.largest >= 0 and not each.words]
    if with_words and with_numbers:
        raise DataError(
            f"the labels are words in {paths[with_words[0]]} and numbers in {paths[with_numbers[0]]}: write all of them"
            " alike"
        )
    words = sorted({word for each in facts for word in each.words})
    if with_words:
        return tuple(words), {word: number for number, word in enumerate(words)}
    largest = max(each.largest for each in facts)
    return tuple(str(number) for number in range(largest + 1)), {}
