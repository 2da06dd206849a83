"""The index of one shard: where each sample's image lies, and its label. It is kept in the cache.

A shard has webdataset's layout: a sample is a run of files that share a key: the path up to the first dot of the file's
name (`0001.jpg`, `0001.cls`). The image is the file with the ending of an image. The label is the
number or word in `.cls`, or else `cls`, `label` or `class` of the object in `.json`; beside `0001.v2.jpg` also in
`0001.v2.cls`. Images in hidden folders are left out, and so are files whose name begins with a dot.

n: samples with an image
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from vantage.data.decode import is_image_name
from vantage.data.sources.file_stamp import FileStamp
from vantage.data.sources.hidden import hidden_part
from vantage.data.sources.listing import unread_ending
from vantage.data.sources.shards.descriptor import Descriptor
from vantage.data.sources.shards.members import Content, Member, members
from vantage.errors import DataError
from vantage.storage.cache import hash_of, read_cached, try_write_json
from vantage.storage.files import atomic_file
from vantage.storage.quiet import quiet_headers

__all__ = ["Facts", "Index", "index_files", "make_index", "cached_index", "counts_in", "state_of"]

_VERSION = 3
_MOST_BYTES = 1 << 30
_MOST_CLASSES = 1_000_000
_LABEL_BYTES = {"cls": 1 << 10, "json": 1 << 20}  # longer files of labels are not read
_KEYS = ("cls", "label", "class")


@dataclass(frozen=True)
class Facts:
    """What a set of shards needs to know about one of them."""

    count: int
    """Number of images."""

    words: tuple[str, ...]
    """Labels that are words, in the order of their numbers in the index; () if labels are numbers."""

    largest: int
    """The largest label; −1 if there are none."""

    digest: str
    """A hash of all names, sizes and labels."""

    hidden: Mapping[str, int]
    """How many images are left out because they are hidden, by the name of what hides them."""

    unread: Mapping[str, int]
    """How many samples are photographs in a format that is not read, by extension."""


@dataclass(frozen=True)
class Index:
    """Facts about a shard, and a row for each image."""

    facts: Facts
    """What the whole set needs to know."""

    rows: Shaped[np.ndarray, "n"]
    """`block` (start in units of 512 bytes), `size` (bytes), `label` (−1 for none) and `name` of each image."""


def state_of(path: str) -> tuple[int, int]:
    """Size and modification time of a shard. Raises `DataError` if it is missing."""
    try:
        return FileStamp.now(Path(path)).state
    except OSError as problem:
        raise DataError(f"cannot read the shard {path}: {problem.strerror}") from problem


def cached_index(path: str, state: tuple[int, int], cache: Path) -> Index:
    """The index of a shard in a given state: from the cache, or else made and kept there if possible.

    Rows in the cache are memory-mapped, others in memory. Raises `DataError` for a shard that cannot be used.
    """
    facts_file, rows_file = index_files(path, state, cache)
    if (index := _read_cache(read_cached(facts_file), rows_file)) is not None:
        return index
    index = make_index(path, state)
    try:
        with atomic_file(rows_file) as file:
            np.save(file, index.rows, allow_pickle=False)
        try_write_json(facts_file, {"version": _VERSION, **vars(index.facts)})
        return Index(index.facts, np.load(rows_file, mmap_mode="r" if index.facts.count else None, allow_pickle=False))
    except OSError:
        return index


def index_files(path: str, state: tuple[int, int], cache: Path) -> tuple[Path, Path]:
    """The files in the cache for the facts and the rows of a shard in a given state."""
    size, mtime = state
    key = hash_of([os.path.realpath(path).encode("utf-8", "surrogateescape"), f"{size} {mtime}".encode()])
    return cache / "shards" / f"{key}.json", cache / "shards" / f"{key}.npy"


def _read_cache(record: Any, rows_file: Path) -> Index | None:
    """An index from the cache; None if there is none or it is damaged, so that it is made again."""
    if not isinstance(record, dict) or record.get("version") != _VERSION:
        return None
    try:
        words = tuple(str(word) for word in record["words"])
        hidden, unread = counts_in(record["hidden"]), counts_in(record["unread"])
        facts = Facts(int(record["count"]), words, int(record["largest"]), str(record["digest"]), hidden, unread)
        with quiet_headers():
            rows = np.load(rows_file, mmap_mode="r" if facts.count else None, allow_pickle=False)
        whole = rows.shape == (facts.count,) and int(rows["label"].max(initial=-1)) == facts.largest
        return Index(facts, rows) if whole and rows.dtype == _kind(rows["name"].itemsize) else None
    except Exception:  # NumPy's reader of headers fails with many kinds of error
        return None


def counts_in(record: Any) -> dict[str, int]:
    """Numbers by name, from a cache file."""
    return {str(name): int(count) for name, count in record.items()}


def _kind(longest: int) -> "np.dtype":
    """A row of an index, for names of at most `longest` bytes."""
    return np.dtype([("block", "<u4"), ("size", "<u4"), ("label", "<i4"), ("name", f"S{longest}")])


def make_index(path: str, state: tuple[int, int]) -> Index:
    """The index of a shard in a given state, from its headers and its files of labels.

    Raises `DataError`, which names the shard, if it cannot be used or is no longer in that state.
    """
    try:
        with Descriptor(path, state) as file:
            if state[0] == 0:
                raise DataError("it is empty")
            return _index(list(_samples(Content(file.number), state[0])))
    except DataError as problem:
        raise DataError(f"the shard {path} cannot be used: {problem}") from problem
    except OSError as problem:
        raise DataError(f"the shard {path} cannot be read: {problem.strerror}") from problem


_Sample = tuple[Member, str | int | None]


def _samples(content: Content, size: int) -> Iterator[_Sample]:
    """The image of each sample, with its label. Raises `DataError` if a key returns after another one."""
    earlier_keys: set[str] = set()
    key, files = "", {}
    for member in members(content, size):
        folder, slash, name = member.name.rpartition("/")
        stem, dot, ending = name.partition(".")
        if not stem or not dot:
            continue
        if (new := folder + slash + stem) != key:
            yield from _sample(content, key, files)
            earlier_keys.add(key)
            if new in earlier_keys:
                raise DataError(
                    f"the key {new!r} comes twice, with others between: the files of a sample belong together"
                )
            key, files = new, {}
        if files.setdefault(ending.lower(), member) is not member:
            raise DataError(f"{member.name!r} comes twice")
    yield from _sample(content, key, files)


def _sample(content: Content, key: str, files: dict[str, Member]) -> Iterator[_Sample]:
    images = [ending for ending in files if is_image_name(f"_.{ending}")]
    images = [ending for ending in images if "." not in ending] or images
    if len(images) > 1:
        both = " and ".join(repr(files[ending].name) for ending in images[:2])
        raise DataError(f"the sample {key!r} has several images, {both}: the key of a file ends at its first dot")
    for ending in images:
        if (image := files[ending]).size > _MOST_BYTES:
            raise DataError(f"the header of {image.name!r} states {image.size:,} bytes: an image has at most 1 GiB")
        yield image, _label(content, files, ending)
    if not images:
        yield from [(member, None) for member in files.values() if unread_ending(member.name)][:1]


def _label(content: Content, files: dict[str, Member], image: str) -> str | int | None:
    before = image[: image.rfind(".") + 1]  # "v2." of v2.jpg
    for ending, most in _LABEL_BYTES.items():
        member = files.get(ending) or files.get(before + ending)
        if member is not None and member.size <= most:
            data = content.at(member.start, member.size)
            try:
                text = data.decode().strip()
                value = text or None if ending == "cls" else _class_in(json.loads(text))
            except (ValueError, RecursionError) as problem:
                raise DataError(f"the label in {member.name!r} cannot be read ({problem})") from problem
            if value is not None:
                return _parse_label(value, member.name)
    return None


def _class_in(record: Any) -> Any:
    values = [record[key] for key in _KEYS if key in record] if isinstance(record, dict) else []
    values = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    return next((value for value in values if isinstance(value, str | int) and not isinstance(value, bool)), None)


def _parse_label(value: str | int, name: str) -> str | int:
    """A label as a number, if it is one, or a word."""
    if isinstance(value, str) and not (value.isascii() and value.removeprefix("-").isdigit()):
        if len(value) > 200 or not value.isprintable():
            raise DataError(f"the label in {name!r} is neither a number nor a word: {value[:40]!r}")
        return value
    if isinstance(value, str) and len(value) > 7 or not 0 <= int(value) < _MOST_CLASSES:
        raise DataError(
            f"the label in {name!r} is {str(value)[:40]}: number the classes from 0, and write none for an image"
            " without a label"
        )
    return int(value)


def _index(all_samples: list[_Sample]) -> Index:
    endings = [unread_ending(image.name) for image, _ in all_samples]
    unread = Counter(filter(None, endings))
    images = [sample for sample, ending in zip(all_samples, endings, strict=True) if not ending]
    hiding = [hidden_part(image.name) for image, _ in images]
    samples = [sample for sample, part in zip(images, hiding, strict=True) if not part]
    labels = [label for _, label in samples if label is not None]
    words = tuple(sorted({str(label) for label in labels})) if any(isinstance(label, str) for label in labels) else ()
    number = {word: at for at, word in enumerate(words)}
    names = [os.fsencode(image.name) for image, _ in samples]
    rows = np.empty(len(samples), _kind(max(map(len, names), default=1)))
    rows["block"] = [image.start >> 9 for image, _ in samples]
    rows["size"] = [image.size for image, _ in samples]
    rows["label"] = [-1 if label is None else number.get(str(label), label) for _, label in samples]
    rows["name"] = names
    digest = hash_of(["\n".join(words).encode(), b"\0".join(names), rows["size"].tobytes(), rows["label"].tobytes()])
    hidden = dict(Counter(filter(None, hiding)))
    return Index(Facts(len(samples), words, int(rows["label"].max(initial=-1)), digest, hidden, dict(unread)), rows)
