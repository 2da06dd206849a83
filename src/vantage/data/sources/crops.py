"""Objects cropped from photographs: the boxes of a COCO file, each an image with its category as label.

h, w: height and width in pixels
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8
from torch import Tensor

from vantage.data.decode import MAX_PIXELS
from vantage.data.sources.folder import Folder
from vantage.errors import DataError
from vantage.storage.cache import hash_of

__all__ = ["BoxCrops", "coco_entries"]

LEAST_SIDE = 32
"""Boxes with a side shorter than this, in pixels, are left out unless the caller sets another bound."""


@dataclass(frozen=True)
class _Box:
    """One object, in whole pixels: its image's position in the list of files, and its category."""

    image: int
    left: int
    top: int
    right: int
    bottom: int
    category: int
    number: int


class BoxCrops:
    """A source with an image for each annotated box.

    Groups of objects (`iscrowd`) and boxes with a side below `least_side` pixels are left out. Edges are rounded to
    whole pixels and clipped to the image. Classes are the remaining categories, by id. The order is that of the file's
    annotations. Raises `DataError` if the file is not a COCO file or has no such box, or if images are missing.
    """

    def __init__(
        self, file: Path, root: Path | None = None, least_side: int = LEAST_SIDE, max_pixels: int = MAX_PIXELS
    ) -> None:
        """`root` is the folder of the images. If omitted, it is derived from the file's name, by COCO's convention:
        `coco/annotations/instances_train2017.json` describes `coco/train2017`."""
        content = _read_json(file)
        with coco_entries(file):
            boxes, self.classes, self._label = _boxes(content, least_side, file)
            names = [str(image["file_name"]) for image in content["images"]]
            self._files = Folder(_folder_of(file, root), names, (), np.full(len(names), -1, np.int32), 0, max_pixels)
        self._boxes = boxes
        first = self._files.path(boxes[0].image)
        if not os.path.isfile(first):
            raise DataError(
                f"{file} describes {first}, which does not exist. Name the folder of images: FILE.json#FOLDER"
            )

    def __len__(self) -> int:
        return len(self._boxes)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One box, cropped from its photograph; raises `UnreadableImage`."""
        box = self._boxes[number]
        whole = self._files.image(box.image)
        if box.bottom > whole.shape[1] or box.right > whole.shape[2]:
            raise DataError(
                f"the box {box.number} ends outside {self._files.name(box.image)}, which is {whole.shape[2]} x"
                f" {whole.shape[1]} pixels, unlike in the annotations: these are other images"
            )
        return whole[:, box.top : box.bottom, box.left : box.right].contiguous()

    def label(self, number: int) -> int:
        """The index of the box's category in `classes`."""
        return self._label[self._boxes[number].category]

    def name(self, number: int) -> str:
        """The photograph's path and the number of the annotation."""
        box = self._boxes[number]
        return f"{self._files.name(box.image)} box {box.number}"

    def fingerprint(self) -> str:
        """A hash of the photographs' fingerprint, of all boxes and of the classes."""
        boxes = "\n".join(map(repr, self._boxes)).encode()
        return hash_of([self._files.fingerprint().encode(), boxes, "\n".join(self.classes).encode()])

    def stamp(self) -> str:
        """A hash of the size and modification time of every photograph."""
        return self._files.stamp()


def _boxes(content: dict[str, Any], least_side: int, file: Path) -> tuple[list[_Box], tuple[str, ...], dict[int, int]]:
    """The boxes that are large enough, the names of their categories, and the label of each category."""
    position = {image["id"]: number for number, image in enumerate(content["images"])}
    category_name = {category["id"]: str(category["name"]) for category in content["categories"]}
    boxes = [box for one in content["annotations"] if (box := _box(one, content["images"], position, least_side))]
    if not boxes:
        raise DataError(f"{file} has no box with sides of {least_side} pixels or more: name another file")
    unknown = {box.category for box in boxes} - set(category_name)
    if unknown:
        raise DataError(f"{file} has boxes of the category {min(unknown)}, which it does not name")
    categories = sorted({box.category for box in boxes})
    names = tuple(category_name[category] for category in categories)
    return boxes, names, {category: number for number, category in enumerate(categories)}


@contextmanager
def coco_entries(file: Path) -> Iterator[None]:
    """A context in which a missing or malformed entry of a COCO file raises `DataError` with the file's name."""
    try:
        yield
    except DataError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise DataError(
            f"{file} is not a COCO file of instances: an entry of it is malformed ({problem!r})"
        ) from problem


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as problem:
        raise DataError(f"cannot read {file}: {problem}. Name a COCO file of instances, ending with .json") from problem
    missing = [
        key for key in ("images", "categories", "annotations") if not isinstance(content, dict) or key not in content
    ]
    if missing:
        raise DataError(f"{file} is not a COCO file of instances: it has no {', '.join(missing)}")
    return content


def _box(one: dict[str, Any], images: list[dict[str, Any]], position: dict[Any, int], least_side: int) -> _Box | None:
    """An annotation's box in whole pixels inside its image; None for groups and for boxes that are too small."""
    if one.get("iscrowd") or "bbox" not in one or one["image_id"] not in position:
        return None
    number = position[one["image_id"]]
    left, top, width, height = one["bbox"]
    right = min(round(left + width), int(images[number]["width"]))
    bottom = min(round(top + height), int(images[number]["height"]))
    left, top = max(round(left), 0), max(round(top), 0)
    if min(right - left, bottom - top) < max(1, least_side):
        return None
    return _Box(number, left, top, right, bottom, one["category_id"], one.get("id", -1))


def _folder_of(file: Path, root: Path | None) -> Path:
    if root is not None:
        return next((path for path in (root, file.parent / root) if path.is_dir()), root)
    split = file.stem.rpartition("_")[2]
    candidates = (file.parent.parent / split, file.parent / split, file.parent / "images", file.parent)
    return next(path for path in candidates if path.is_dir())
