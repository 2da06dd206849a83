"""Many file names in little memory, and the classes given by their folders."""

import os
import re
from collections.abc import Iterable

import numpy as np

_WITHOUT_LABELS = {"nolabel", "nolabels", "unlabeled", "unlabelled", "unsup", "unsupervised"}
"""Names of folders for images without a class, in lower case and letters only."""


class Names:
    """An immutable list of names in two arrays: a million take about 50 MB, and worker processes share the pages."""

    def __init__(self, names: Iterable[str]) -> None:
        as_bytes = [os.fsencode(name) for name in names]
        self._ends = np.cumsum([len(name) for name in as_bytes], dtype=np.int64)
        self._text = np.frombuffer(b"".join(as_bytes), dtype=np.uint8)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> str:
        if not 0 <= number < len(self):
            raise IndexError(f"image {number} of {len(self)}")
        start = int(self._ends[number - 1]) if number else 0
        return os.fsdecode(self._text[start : int(self._ends[number])].tobytes())

    def facts(self) -> list[bytes]:
        """Bytes that identify these names."""
        return [self._text.tobytes(), self._ends.tobytes()]


def text_of(name: str) -> str:
    """A name with bytes that are not UTF-8 replaced, since pages, tables and pictures cannot hold them."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def parent(name: str) -> str:
    """The folders before the last slash; "" for a name at the top."""
    return name.rpartition("/")[0]


def last_folder(name: str) -> str:
    """The name of the folder that a name lies in, which may be its class; "" for a name at the top."""
    return parent(name).rpartition("/")[2]


def doubtful_class(classes: Iterable[str]) -> str:
    """The first class whose name says that its images have none, such as `unlabeled`; "" if there is none."""
    return next((name for name in classes if re.sub("[^a-z]", "", str(name).lower()) in _WITHOUT_LABELS), "")


def classes_from(names: Iterable[str]) -> tuple[tuple[str, ...], "np.ndarray"]:
    """Class names, and a label for each name (−1 for none), from the folder each image lies in.

    The class of `a/cat/1.jpg` is `cat`, the folder it lies in. Images at the top (directly below the folders that all
    share) have none. If all images lie in one folder there are no classes.
    """
    folders = [parent(name) for name in names]
    distinct = sorted(set(folders))
    top = os.path.commonpath(distinct) if distinct and "" not in distinct else ""
    classes = tuple(sorted({folder.rpartition("/")[2] for folder in distinct if folder != top}))
    if len(classes) < 2:
        return (), np.full(len(folders), -1, dtype=np.int32)
    index = {name: number for number, name in enumerate(classes)}
    of_folder = {folder: -1 if folder == top else index[folder.rpartition("/")[2]] for folder in distinct}
    return classes, np.array([of_folder[folder] for folder in folders], dtype=np.int32)
