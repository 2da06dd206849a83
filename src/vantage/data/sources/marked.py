"""Images that show several classes each: a table file, or a folder of the PASCAL VOC challenge.

h, w: height and width in pixels   n: images   c: classes
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import torch
from jaxtyping import Int8, UInt8
from torch import Tensor

from vantage.data.decode import MAX_PIXELS, is_image_name
from vantage.data.sources.flags import shown_by_flags
from vantage.data.sources.folder import Folder
from vantage.errors import DataError
from vantage.storage.cache import hash_of

__all__ = ["Marked", "voc_splits"]

_DIFFICULT = "?"
_LISTS, _BOXES, _PICTURES = Path("ImageSets", "Main"), "Annotations", "JPEGImages"


class Marked:
    """Image files below a root folder, each marked with any number of classes: present, difficult, or absent.

    `Marked.table` reads a table file, `Marked.voc` a folder of PASCAL VOC.
    """

    def __init__(
        self,
        root: Path,
        names: Sequence[str],
        classes: tuple[str, ...],
        marks: Int8[Tensor, "n c"],
        max_pixels: int = MAX_PIXELS,
    ) -> None:
        self.classes = classes
        self.max_pixels = max_pixels
        self._files = Folder(root, names, (), np.full(len(names), -1, np.int32), 0, max_pixels)
        self._marks = marks

    @classmethod
    def table(cls, path: Path, max_pixels: int = MAX_PIXELS) -> "Marked":
        """The images of a table of comma-separated values: on each line the path of an image, relative to the table's
        folder, and the names of all classes that it shows, such as `photos/1.jpg,dog,person,chair?`; or 1 and 0 for
        each class under a heading such as `image,dog,person` (`vantage.data.sources.flags`).

        A class with ? behind it is difficult to see. An image without classes shows none of them. A first line whose
        first word names no image is a heading; empty lines and lines that begin with # are passed over. Raises
        `DataError` that names the first bad lines, or an image that stands there twice, or flags that are not clear.
        """
        try:
            rows = list(csv.reader(path.read_text(encoding="utf-8-sig", errors="surrogateescape").splitlines()))
        except (OSError, csv.Error) as error:
            raise DataError(f"cannot read the table {path}: {getattr(error, 'strerror', None) or error}") from error
        lines = [(number, [word.strip() for word in row]) for number, row in enumerate(rows, 1)]
        lines = [(number, row) for number, row in lines if any(row) and not row[0].startswith("#")]
        heading = lines.pop(0) if lines and not _names_image(lines[0][1][0]) else None
        bad = [f"line {number}: {','.join(row)[:80]!r}" for number, row in lines if not _names_image(row[0])]
        if bad or not lines:
            found = f"has {len(bad)} bad lines: {'; '.join(bad[:3])}" if bad else "names no images"
            raise DataError(
                f"the table {path} {found}. Write on each line the path of an image and the classes it shows:"
                " photos/1.jpg,dog,person"
            )
        flagged = shown_by_flags(path, heading, lines)
        shown = {row[0]: [word for word in row[1:] if word] for _, row in lines} if flagged is None else flagged[1]
        if len(shown) < len(lines):
            raise DataError(f"the table {path} names {len(lines) - len(shown)} images twice: write each on one line")
        classes = tuple(sorted({word.removesuffix(_DIFFICULT) for words in shown.values() for word in words}))
        classes = classes if flagged is None else flagged[0]
        if not classes:
            raise DataError(f"the table {path} names no class: write behind each image the classes it shows")
        return cls(path.parent, list(shown), classes, _marks(shown, classes), max_pixels)

    @classmethod
    def voc(cls, root: Path, split: str, max_pixels: int = MAX_PIXELS) -> "Marked":
        """A split, such as trainval or test, of a folder such as VOCdevkit/VOC2007.

        The images are those of ImageSets/Main/SPLIT.txt. What they show is told by the lists of each class beside it
        (dog_trainval.txt: 1, 0 for difficult, −1), or by the boxes in Annotations where such lists are missing: a class
        all of whose boxes are difficult is difficult. Raises `DataError` where neither is there.
        """
        names = [line.split()[0] for line in _lines(root / _LISTS / f"{split}.txt") if line.strip()]
        if not names:
            raise DataError(f"{root / _LISTS / split}.txt names no images")
        lists = sorted((root / _LISTS).glob(f"*_{split}.txt"))
        classes = tuple(path.name.removesuffix(f"_{split}.txt") for path in lists)
        if lists:
            marks = torch.stack([_of_list(path, names) for path in lists], 1)
        else:
            shown = {name: _of_boxes(root / _BOXES / f"{name}.xml") for name in names}
            classes = tuple(sorted({word.removesuffix(_DIFFICULT) for words in shown.values() for word in words}))
            marks = _marks(shown, classes)
        if not classes:
            raise DataError(f"{root}#{split} names no class: neither lists of classes nor boxes tell what images show")
        return cls(root, [f"{_PICTURES}/{name}.jpg" for name in names], classes, marks, max_pixels)

    def __len__(self) -> int:
        return len(self._files)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`."""
        return self._files.image(number)

    def label(self, number: int) -> int | None:
        """None: an image may show several classes (`marks`)."""
        return None

    def marks(self) -> Int8[Tensor, "n c"]:
        """1 where an image shows a class, 0 where that is difficult to see, −1 where it does not."""
        return self._marks

    def name(self, number: int) -> str:
        """The image's path relative to the root."""
        return self._files.name(number)

    def fingerprint(self) -> str:
        """A hash of all names and marks, and of the bytes of at most 32 files evenly spaced among them."""
        facts = (self._files.fingerprint().encode(), "\n".join(self.classes).encode(), self._marks.numpy().tobytes())
        return hash_of(facts)

    def stamp(self) -> str:
        """A hash of the size and time of change of every file."""
        return self._files.stamp()


def voc_splits(root: Path) -> tuple[str, ...]:
    """The splits of a folder of PASCAL VOC, such as trainval and test; () for a folder of another kind."""
    if not (root / _LISTS).is_dir() or not (root / _PICTURES).is_dir():
        return ()
    return tuple(sorted(path.stem for path in (root / _LISTS).glob("*.txt") if "_" not in path.stem))


def _names_image(word: str) -> bool:
    return is_image_name(word.rpartition("/")[2])


def _marks(shown: Mapping[str, Sequence[str]], classes: tuple[str, ...]) -> Int8[Tensor, "n c"]:
    place = {name: number for number, name in enumerate(classes)}
    marks = torch.full((len(shown), len(classes)), -1, dtype=torch.int8)
    for row, words in zip(marks, shown.values(), strict=True):
        for word in words:
            name = word.removesuffix(_DIFFICULT)
            row[place[name]] = max(int(row[place[name]]), int(name == word))  # seen well once is seen
    return marks


def _of_list(path: Path, names: Sequence[str]) -> Int8[Tensor, "n"]:
    """What the list of one class says of each image."""
    told = dict(line.split() for line in _lines(path) if len(line.split()) == 2)
    missing = [name for name in names if told.get(name) not in ("1", "0", "-1")]
    if missing:
        raise DataError(
            f"{path} does not say 1, 0 or -1 of {len(missing)} images of the split, such as {missing[0]}: unpack the"
            " set anew"
        )
    return torch.tensor([int(told[name]) for name in names], dtype=torch.int8)


def _of_boxes(path: Path) -> list[str]:
    """The classes of an image's boxes, with ? behind those that are difficult."""
    try:
        boxes = ElementTree.parse(path).getroot().iter("object")
        return [
            f"{box.findtext('name', '').strip()}{_DIFFICULT if box.findtext('difficult', '0').strip() == '1' else ''}"
            for box in boxes
        ]
    except (OSError, ElementTree.ParseError) as error:
        raise DataError(f"cannot read what the image shows in {path}: {error}") from error


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
