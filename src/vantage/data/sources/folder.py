"""Images in a tree of folders, and images named by a list file.

h, w: height and width in pixels
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from torch import Tensor

from vantage.data.decode import MAX_PIXELS, decode, is_image_name
from vantage.data.sources.hidden import hidden_words
from vantage.data.sources.listing import list_images, unread_words
from vantage.data.sources.named_twice import files_below, linked_twice, listed_twice, other_classes
from vantage.data.sources.names import Names, classes_from
from vantage.data.sources.source import read_some, stamp_of_files
from vantage.errors import DataError, UnreadableImage, quantity
from vantage.storage.cache import hash_of


class Folder:
    """Image files below a root folder, by name, with the label of each.

    `Folder.below` lists a tree, `Folder.from_list` reads a list file. `other_files` counts the files that were left
    out because they do not have the extension of an image; `unread` counts, by extension, those of them that are
    photographs. `hidden` counts the images that were left out because they are hidden, by what hides them. `tars` are
    tars beside the images. `twice` holds both names of each image that is named twice; it counts once.
    `other_classes` says which classes do not count for that reason.
    """

    def __init__(
        self,
        root: Path,
        names: Sequence[str],
        classes: tuple[str, ...],
        labels: "np.ndarray",
        other_files: int = 0,
        max_pixels: int = MAX_PIXELS,
        unread: Mapping[str, int] | None = None,
        hidden: Mapping[str, int] | None = None,
        tars: Sequence[str] = (),
        twice: Sequence[tuple[str, str]] = (),
        other_classes: str = "",
    ) -> None:
        self.root = root
        self._absolute = root.absolute()  # a notebook may change its folder meanwhile
        self.classes = classes
        self.other_files = other_files
        self.unread, self.hidden, self.tars, self.twice = unread or {}, hidden or {}, tars, twice
        self.other_classes = other_classes
        self.max_pixels = max_pixels
        self._names = Names(names)
        self._labels = labels

    @classmethod
    def below(cls, root: Path, cache: Path, max_pixels: int = MAX_PIXELS, tars: Sequence[str] = ()) -> "Folder":
        """All images below `root` that are not hidden. If they lie in several folders, the folder of an image is its
        class. `tars` are the tars directly in it, which are left out."""
        listing = list_images(root, cache)
        if not listing.names:
            if words := hidden_words(listing.hidden):
                raise DataError(
                    f"no images in {root}, except {words}, which are left out. To use them, name their folder itself,"
                    " or rename what hides them"
                )
            count = listing.other_files
            found = f"found {quantity(count, 'other file')} there and below" if count else "it holds no files"
            todo = "Name a folder with JPEG, PNG, WebP, BMP, TIFF or GIF files, or one that holds the shards itself"
            if listing.unread:
                todo = f"{unread_words(listing.unread)} among them can be converted to JPEG, which is read"
            raise DataError(f"no images in {root}: {found}. {todo}")
        again = linked_twice(root, listing.names, listing.links)
        names = [name for name in listing.names if name not in again]
        classes, labels = classes_from(names)
        left_out = (listing.other_files, max_pixels, listing.unread, listing.hidden, tars)
        twice = [(name, other) for other, name in again.items()]
        return cls(root, names, classes, labels, *left_out, twice, other_classes(twice))

    @classmethod
    def from_list(cls, path: Path, max_pixels: int = MAX_PIXELS) -> "Folder":
        """The images of a list file: on each line a path, relative to the file's folder, and optionally a label.

        The label follows the path after a tab or a space; it is a word or a number. Empty lines and lines that begin
        with # are skipped. An image that two lines name counts once. Raises a `DataError` that names the first bad
        lines, or an image with two labels.
        """
        names, labels, numbers, bad = [], [], [], []
        try:
            lines = path.read_text(encoding="utf-8-sig", errors="surrogateescape").split("\n")
        except OSError as error:
            raise DataError(f"cannot read the list file {path}: {error.strerror}") from error
        for number, line in enumerate(lines, 1):
            line = line.strip()
            if line and not line.startswith("#"):
                name, label = _split_line(line)
                is_negative = label[:1] == "-" and label[1:].isdecimal()  # others write so that there is none
                if is_image_name(name.rpartition("/")[2]) and not is_negative:
                    names.append(name)
                    labels.append(label)
                    numbers.append(number)
                else:
                    bad.append(f"line {number}: {line[:80]!r}")
        if bad:
            raise DataError(
                f"the list file {path} has {quantity(len(bad), 'bad line')}: {'; '.join(bad[:3])}. "
                "Write on each line the path of an image and, if it has one, its label"
            )
        if not names:
            raise DataError(f"the list file {path} names no images: write on each line the path of an image")
        names, labels, twice = _once(path, names, labels, numbers)
        words = {label for label in labels if label}
        numeric = all(word.isdecimal() and len(word) <= 4_300 for word in words)  # longer ones are no numbers to int
        classes = tuple(sorted(words, key=(lambda word: (int(word), word)) if numeric else None))
        index = {word: number for number, word in enumerate(classes)}
        label = np.array([index.get(word, -1) for word in labels], np.int32)
        return cls(path.parent, names, classes, label, 0, max_pixels, twice=twice)

    def __len__(self) -> int:
        return len(self._names)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`."""
        return decode(self.file_bytes(number), self.name(number), self.max_pixels)

    def file_bytes(self, number: int) -> bytearray:
        """The bytes of one image's file; raises `UnreadableImage` when it cannot be read."""
        try:
            with open(self.path(number), "rb", buffering=0) as file:
                data = bytearray(os.fstat(file.fileno()).st_size)
                size = 0
                while size < len(data) and (count := file.readinto(memoryview(data)[size:])):
                    size += count
                return data[:size] if size < len(data) else data
        except (OSError, ValueError) as error:  # a list may contain names that no file can have
            raise UnreadableImage(self.name(number), getattr(error, "strerror", None) or str(error)) from error

    def path(self, number: int) -> Path:
        """The path of one image's file."""
        return self._absolute / self._names[number]

    def label(self, number: int) -> int | None:
        """The index of the image's class, or None."""
        return None if self._labels[number] < 0 else int(self._labels[number])

    def name(self, number: int) -> str:
        """The image's path relative to the root."""
        return self._names[number]

    def fingerprint(self) -> str:
        """A hash of all names and labels, and of the bytes of at most 32 files evenly spaced among them."""
        words = "\n".join(self.classes).encode("utf-8", "surrogateescape")
        facts = [*self._names.facts(), words, self._labels.tobytes()]
        return hash_of([*facts, *read_some(len(self), self.file_bytes)])

    def stamp(self) -> str:
        """A hash of the size and modification time of every file."""
        return stamp_of_files(os.path.join(self._absolute, name) for name in self._names)

    def files(self) -> Iterator[str]:
        """The path of each image's file, in which links among folders are resolved."""
        return files_below(self._absolute, (self._names[number] for number in range(len(self))))


def _split_line(line: str) -> tuple[str, str]:
    """Path and label ("" for none). A line that ends in an image's extension has no label: paths may hold spaces."""
    if "\t" in line:
        name, _, label = line.partition("\t")
        label = label.strip()
        return "" if "\t" in label else name.strip(), label  # a third column would make each line a class
    if is_image_name(line.rpartition("/")[2]):
        return line, ""
    name, _, label = line.rpartition(" ")
    return name.strip(), label


def _once(
    path: Path, names: Sequence[str], labels: list[str], numbers: list[int]
) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """Names and labels of a list file without those of images that an earlier line names, and both names of each of
    these. A label on either line counts; `numbers` are those of the lines."""
    again = listed_twice(path.parent, names)
    for number, first in again.items():
        if not labels[first]:
            labels[first], numbers[first] = labels[number], numbers[number]
        elif labels[number] not in ("", labels[first]):
            other = f" (as {names[number]})" if names[number] != names[first] else ""
            raise DataError(
                f"the list file {path} gives two labels to one image: {names[first]} is {labels[first]!r} on line"
                f" {numbers[first]}, but {labels[number]!r} on line {numbers[number]}{other}. Remove one of them, or"
                " write a table (.csv) for images that show several classes"
            )
    kept = [number for number in range(len(names)) if number not in again]
    twice = [(names[first], names[number]) for number, first in again.items()]
    return [names[number] for number in kept], [labels[number] for number in kept], twice
