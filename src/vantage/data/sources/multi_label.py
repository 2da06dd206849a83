"""Images that show several classes each: a table file, or a folder of the PASCAL VOC challenge.

n: images   c: classes
"""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import torch
from jaxtyping import Int8
from torch import Tensor

from vantage.data.decode import MAX_PIXELS, is_image_name
from vantage.data.sources.flags import Line, classes_by_flags
from vantage.data.sources.folder import Folder
from vantage.data.sources.named_twice import listed_twice
from vantage.data.sources.relabeled import Relabeled
from vantage.errors import DataError, quantity
from vantage.storage.cache import hash_of

__all__ = ["MultiLabelImages", "voc_splits"]

_DIFFICULT = "?"
_LISTS, _BOXES, _PICTURES = Path("ImageSets", "Main"), "Annotations", "JPEGImages"


class MultiLabelImages(Relabeled):
    """Image files below a root folder, each marked with any number of classes: present, difficult, or absent. If every
    image shows exactly one, they have labels, as images in a folder for each class do.

    `MultiLabelImages.table` reads a table file, `MultiLabelImages.voc` a folder of PASCAL VOC.
    """

    def __init__(
        self,
        root: Path,
        names: Sequence[str],
        classes: tuple[str, ...],
        marks: Int8[Tensor, "n c"],
        max_pixels: int = MAX_PIXELS,
    ) -> None:
        super().__init__(Folder(root, names, (), np.full(len(names), -1, np.int32), 0, max_pixels))
        self.classes = classes
        self.max_pixels = max_pixels
        self._marks = marks
        has_one_class_each = bool(((marks == 1).sum(1) == 1).all()) and not bool((marks == 0).any())
        self._label = marks.argmax(1).tolist() if has_one_class_each else None

    @classmethod
    def table(cls, path: Path, max_pixels: int = MAX_PIXELS) -> "MultiLabelImages":
        """The images of a table of comma-separated values: on each line the path of an image, relative to the table's
        folder, and the names of all classes that it shows, such as `photos/1.jpg,dog,person,chair?`; or 1 and 0 for
        each class under a heading such as `image,dog,person` (`vantage.data.sources.flags`).

        A class followed by ? is difficult to see. An image without classes shows none of them. A first line whose first
        word does not name an image is a heading; empty lines and lines that begin with # are skipped. Raises
        `DataError` that names the first bad lines, an image that occurs twice, or ambiguous flags.
        """
        heading, lines = _read_table(path)
        classes, classes_of = classes_by_flags(path, heading, lines) or _classes_by_names(lines)
        if again := listed_twice(path.parent, [row[0] for _, row in lines]):
            second, first = next(iter(again.items()))
            where = f"{lines[first][1][0]} on lines {lines[first][0]} and {lines[second][0]}"
            raise DataError(
                f"the table {path} names {quantity(len(again), 'image')} twice, such as {where}: write each on one line"
            )
        if not classes:
            raise DataError(
                f"the table {path} names no class: write after each image the classes it shows, or, of images without"
                " classes, make it a list: a file .txt with a path on each line"
            )
        return cls(path.parent, list(classes_of), classes, _marks(classes_of, classes), max_pixels)

    @classmethod
    def voc(cls, root: Path, split: str, max_pixels: int = MAX_PIXELS) -> "MultiLabelImages":
        """A split, such as trainval or test, of a folder such as VOCdevkit/VOC2007.

        The images are those of ImageSets/Main/SPLIT.txt. Their classes come from a list for each class beside it
        (dog_trainval.txt: 1, 0 for difficult, −1), or, without such lists, from the boxes in Annotations: a class all
        of whose boxes are difficult is difficult. Raises `DataError` if there is neither, or if the split names an
        image twice.
        """
        file = root / _LISTS / f"{split}.txt"
        names = [line.split()[0] for line in _lines(file) if line.strip()]
        if not names:
            raise DataError(f"{file} names no images")
        if again := [name for name, count in Counter(names).items() if count > 1]:
            raise DataError(
                f"{file} names {quantity(len(again), 'image')} twice, such as {again[0]}: write each on one line"
            )
        lists = sorted((root / _LISTS).glob(f"*_{split}.txt"))
        classes = tuple(path.name.removesuffix(f"_{split}.txt") for path in lists)
        if lists:
            marks = torch.stack([_of_list(path, names) for path in lists], 1)
        else:
            classes_of = {name: _of_boxes(root / _BOXES / f"{name}.xml") for name in names}
            classes = _class_names(classes_of)
            marks = _marks(classes_of, classes)
        if not classes:
            raise DataError(f"{root}#{split} names no class: there are neither lists of classes nor boxes")
        return cls(root, [f"{_PICTURES}/{name}.jpg" for name in names], classes, marks, max_pixels)

    def marks(self) -> Int8[Tensor, "n c"] | None:
        """1 if an image shows a class, 0 if that is difficult to see, −1 if it does not; None if every image shows
        exactly one class, and none is difficult."""
        return self._marks if self._label is None else None

    def label(self, number: int) -> int | None:
        """The class of an image if every image shows exactly one, and none is difficult; else None."""
        return None if self._label is None else self._label[number]

    def fingerprint(self) -> str:
        """A hash of all names and marks, and of the bytes of at most 32 files evenly spaced among them."""
        facts = (
            self.source.fingerprint().encode(),
            "\n".join(self.classes).encode("utf-8", "surrogateescape"),
            self._marks.numpy().tobytes(),
        )
        return hash_of(facts)


def voc_splits(root: Path) -> tuple[str, ...]:
    """The splits of a folder of PASCAL VOC, such as trainval and test; () for a folder of another kind."""
    if not (root / _LISTS).is_dir() or not (root / _PICTURES).is_dir():
        return ()
    return tuple(sorted(path.stem for path in (root / _LISTS).glob("*.txt") if "_" not in path.stem))


def _read_table(path: Path) -> tuple[Line | None, list[Line]]:
    """The heading of a table, if it has one, and its other lines, each of which begins with the path of an image.
    Raises `DataError` that names the first bad lines."""
    try:
        with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, csv.Error) as error:
        raise DataError(f"cannot read the table {path}: {getattr(error, 'strerror', None) or error}") from error
    lines = [(number, [word.strip() for word in row]) for number, row in enumerate(rows, 1)]
    lines = [(number, row) for number, row in lines if any(row) and not row[0].startswith("#")]
    heading = lines.pop(0) if lines and not _names_image(lines[0][1][0]) else None
    bad = [f"line {number}: {','.join(row)[:80]!r}" for number, row in lines if not _names_image(row[0])]
    if bad or not lines:
        some = f"has {quantity(len(bad), 'bad line')}: {'; '.join(bad[:3])}"
        raise DataError(
            f"the table {path} {some if bad else 'names no images'}. Write on each line the path of an image and the"
            " classes it shows: photos/1.jpg,dog,person"
        )
    return heading, lines


def _classes_by_names(lines: Sequence[Line]) -> tuple[tuple[str, ...], dict[str, list[str]]]:
    """The classes of a table whose cells are names of classes, in alphabetical order, and those that each image shows,
    as `classes_by_flags` returns them."""
    classes_of = {row[0]: [word for word in row[1:] if word] for _, row in lines}
    return _class_names(classes_of), classes_of


def _class_names(classes_of: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """All classes of some images, in alphabetical order, without the mark for those that are difficult to see."""
    return tuple(sorted({word.removesuffix(_DIFFICULT) for words in classes_of.values() for word in words}))


def _names_image(word: str) -> bool:
    return is_image_name(word.rpartition("/")[2])


def _marks(classes_of: Mapping[str, Sequence[str]], classes: tuple[str, ...]) -> Int8[Tensor, "n c"]:
    column = {name: number for number, name in enumerate(classes)}
    marks = torch.full((len(classes_of), len(classes)), -1, dtype=torch.int8)
    for row, words in zip(marks, classes_of.values(), strict=True):
        for word in words:
            name = word.removesuffix(_DIFFICULT)
            row[column[name]] = max(int(row[column[name]]), int(name == word))  # one clear object is enough
    return marks


def _of_list(path: Path, names: Sequence[str]) -> Int8[Tensor, "n"]:
    """The marks of each image in the list of one class."""
    marks = dict(line.split() for line in _lines(path) if len(line.split()) == 2)
    missing = [name for name in names if marks.get(name) not in ("1", "0", "-1")]
    if missing:
        raise DataError(
            f"{path} has no 1, 0 or -1 for {quantity(len(missing), 'image')} of the split, such as {missing[0]}: unpack"
            " the set again"
        )
    return torch.tensor([int(marks[name]) for name in names], dtype=torch.int8)


def _of_boxes(path: Path) -> list[str]:
    """The classes of an image's boxes, with ? after those that are difficult."""
    try:
        boxes = ElementTree.parse(path).getroot().iter("object")
        return [
            f"{box.findtext('name', '').strip()}{_DIFFICULT if box.findtext('difficult', '0').strip() == '1' else ''}"
            for box in boxes
        ]
    except (OSError, ElementTree.ParseError, ValueError, LookupError) as error:  # its encoding may not exist
        raise DataError(f"cannot read the classes of an image from {path}: {error}") from error


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
