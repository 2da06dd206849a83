"""The interface of every source of images, and what is known of any source by it.

h, w: height and width in pixels   n: images   c: classes
s: blocks + 1
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Int, Int8, UInt8
from torch import Tensor

from vantage.data.sources.names import text_of
from vantage.errors import DataError, UnreadableImage
from vantage.storage.cache import hash_of


@runtime_checkable
class Source(Protocol):
    """Images by number, each with a name and optionally a label. Sources may be sent to worker processes."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes in the order of their labels; () if the images have no labels."""
        ...

    def __len__(self) -> int: ...

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB, upright by its EXIF tag; raises `UnreadableImage`."""
        ...

    def label(self, number: int) -> int | None:
        """The index of the image's class in `classes`, or None."""
        ...

    def name(self, number: int) -> str:
        """The image's path relative to the source's, or "row 17" if images have no path."""
        ...

    def fingerprint(self) -> str:
        """A hash of the content, which does not depend on modification times or on where the source is stored."""
        ...


@runtime_checkable
class HasStamp(Protocol):
    """A source that can detect whether its files have changed since it was last opened on this machine."""

    def stamp(self) -> str:
        """A hash of the sizes and modification times of all files."""
        ...


@runtime_checkable
class HasFiles(Protocol):
    """A source that may have a file for each image."""

    def files(self) -> Iterator[str]:
        """The path of each image's file, by which two sources that share it can tell; none if images have no files."""
        ...


@runtime_checkable
class HasBlocks(Protocol):
    """A source that is best read block by block: its blocks are shuffled, and images among neighbors."""

    def blocks(self) -> Int[Tensor, "s"]:
        """The number of the first image of each block, and at the end the number of images."""
        ...


@runtime_checkable
class MultiLabeled(Protocol):
    """A source whose images may show several classes each; while it has marks, `label` is None for all of them."""

    def marks(self) -> Int8[Tensor, "n c"] | None:
        """For each image and each of `classes` 1 (it shows the class), −1 (it does not) or 0 (difficult to see).

        None for a source with one class per image, or one that wraps such a source.
        """
        ...


@runtime_checkable
class HasMasks(Source, Protocol):
    """A source that knows the class of every pixel; `label` is None for all of its images."""

    def mask(self, number: int) -> UInt8[Tensor, "h w"]:
        """The class of every pixel of one image; `vantage.data.sources.masked.IGNORE_INDEX` for a pixel without one."""
        ...


def refuse_path(*sources: Any) -> None:
    """Raises `DataError` for the path of images in place of a source of them."""
    if paths := [str(source) for source in sources if isinstance(source, str | os.PathLike)]:
        raise DataError(f"{paths[0]!r} is a path, not a source of images: give vantage.open_source({paths[0]!r})")


def check_source(source: Any) -> Source:
    """The same object, if it can serve as a source; raises `DataError` naming what it lacks or gets wrong."""
    refuse_path(source)
    kind = type(source).__name__
    methods = ("classes", "__len__", "image", "label", "name", "fingerprint")
    missing = [method for method in methods if not hasattr(source, method)]
    if missing:
        raise DataError(f"{kind} cannot be used as a source: it has no {', '.join(missing)}. See vantage.data.Source")
    if len(source) == 0:
        raise DataError(f"{kind} holds no images")
    try:
        image = source.image(0)
    except UnreadableImage:
        return source
    if not isinstance(image, Tensor) or image.dtype != torch.uint8 or image.ndim != 3 or image.shape[0] != 3:
        actual = f"{image.dtype} of shape {tuple(image.shape)}" if isinstance(image, Tensor) else type(image).__name__
        raise DataError(f"{kind}.image gives {actual}: give a uint8 tensor of shape (3, height, width), of 0 to 255")
    return source


def blocks_of(source: Source) -> Int[Tensor, "s"]:
    """The number of the first image of each block of a source, and the number of images; one block if it has none."""
    return source.blocks() if isinstance(source, HasBlocks) else torch.tensor([0, len(source)])


def class_of(source: Source, number: int) -> str:
    """The name of an image's class; empty if it has none."""
    label = source.label(number)
    if label is None or label < 0:
        return ""
    return text_of(source.classes[label]) if label < len(source.classes) else str(label)


def distinct(names: Iterable[str]) -> list[tuple[str, int]]:
    """Each name with how often it came before: two classes of ImageNet are called crane."""
    before = Counter[str]()
    pairs = []
    for name in names:
        pairs.append((name, before[name]))
        before[name] += 1
    return pairs


def distinct_classes(source: Source) -> tuple[str, ...]:
    """The names of a source's classes, as crane, ox, crane (2) if two have one name: for numbers by class."""
    return tuple(f"{name} ({before + 1})" if before else name for name, before in distinct(source.classes))


def marks_in(source: Source) -> Int8[Tensor, "n c"] | None:
    """The marks of a multi-label source for every image and class; None for a source with one class per image."""
    return source.marks() if isinstance(source, MultiLabeled) else None


def classes_in_words(source: Source, marks: Int8[Tensor, "n c"]) -> str:
    """The first image that does not show exactly one class, for a message: ", such as a.jpg (dog, person?)"."""
    others = ((marks == 1).sum(1) != 1) | (marks == 0).any(1)
    if not others.any():
        return ""
    number = int(others.int().argmax())
    pairs = zip(source.classes, marks[number].tolist(), strict=True)
    shown = [name + "?" * (mark == 0) for name, mark in pairs if mark >= 0]
    return f", such as {source.name(number)} ({', '.join(shown) or 'none'})"


def marks_of(source: Source) -> Int8[Tensor, "n c"]:
    """Which classes each image of any source shows (1), does not show (−1), or shows with difficulty (0).

    These are the source's own marks, or follow from its labels; an image without a label is then −1 everywhere.
    """
    marks = marks_in(source)
    if marks is None:
        label = labels_of(source)
        marks = torch.full((len(label), class_count(label, source)), -1, dtype=torch.int8)
        has_label = label >= 0
        marks[has_label, label[has_label]] = 1
    return marks


def labels_of(source: Source) -> Int[Tensor, "n"]:
    """Every image's label, −1 if it has none. Raises `DataError` for one that is no integer."""
    labels = [source.label(number) for number in range(len(source))]
    if unfit := [label for label in labels if not (label is None or hasattr(label, "__index__"))]:
        raise DataError(
            f"{type(source).__name__} gives the label {unfit[0]!r}: give the number of the class in `classes`, or None"
        )
    return torch.tensor([-1 if label is None else label for label in labels], dtype=torch.int64)


def class_count(label: Int[Tensor, "n"], *sources: Source) -> int:
    """How many classes there are: those that the sources name, or more if a label exceeds them."""
    largest = int(label.max()) if len(label) else -1
    return max([largest + 1, *(len(source.classes) for source in sources)])


def cache_key(source: Source) -> str:
    """The name under which this machine caches what was computed from a source's images.

    A fingerprint reads only some images, and is the same wherever the images are stored. This key also depends on
    the modification times, if the source has them, so that a replaced image is read again.
    """
    return hash_of([source.fingerprint().encode(), stamp_of(source).encode()])


def stamp_of(source: Source) -> str:
    """A source's stamp, or "" if it has none."""
    return source.stamp() if isinstance(source, HasStamp) else ""


def files_of(source: Source) -> Iterator[str]:
    """The path of each image's file; none if the source has no such files."""
    return source.files() if isinstance(source, HasFiles) else iter(())


def stamp_of_files(paths: Iterable[str | os.PathLike[str]]) -> str:
    """A hash of the sizes and modification times of files."""
    facts = []
    for path in paths:
        try:
            state = os.stat(path)
            facts.append(f"{state.st_size} {state.st_mtime_ns}".encode())
        except (OSError, ValueError):
            facts.append(b"unreadable")
    return hash_of(facts)


def read_some(count: int, read: Callable[[int], bytes | bytearray]) -> Iterator[bytes]:
    """The result of `read` for at most 32 of `count` images, evenly spaced; b"unreadable" for unreadable ones."""
    for number in spread(count):
        try:
            yield bytes(read(number))
        except UnreadableImage:
            yield b"unreadable"


def spread(count: int, most: int = 32) -> Iterator[int]:
    """Up to `most` numbers below `count`, evenly spaced from first to last: what a fingerprint reads."""
    if count <= most:
        yield from range(count)
    else:
        yield from (step * (count - 1) // (most - 1) for step in range(most))
