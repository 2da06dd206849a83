"""COCO: one JSON file of images, categories and annotations, and the folder of the images.

n: instances in an image   k: keypoints   h, w: height and width in pixels
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vantage.data.decode import MAX_PIXELS
from vantage.data.sources.crops import coco_entries
from vantage.data.sources.folder import Folder
from vantage.errors import DataError
from vantage.evaluate.protocols.detection.sources.annotated import AnnotatedFolder, Instances, RunLengths
from vantage.evaluate.protocols.detection.sources.masks import check_mask, runs_of
from vantage.storage.cache import hash_of

__all__ = ["CocoImages"]


class CocoImages(AnnotatedFolder):
    """The images of a COCO file, in the order of their ids, with their instances.

    Classes are the categories by ascending id, so that COCO's own files agree. Boxes are clipped to the image; an
    instance whose box has no area is left out. Raises `DataError` for a file that is not a COCO file, that annotates
    nothing, that refers to images or categories it does not have, or whose images are missing.
    """

    def __init__(self, file: Path, root: Path | None = None, max_pixels: int = MAX_PIXELS) -> None:
        """`root` is the folder of the images; if omitted, it is looked for near the file, as in COCO's own folders."""
        self.file, self._stated_in = file, str(file)
        with coco_entries(file):
            self._load(*_read_file(file), root, max_pixels)

    def _load(self, content: dict[str, Any], digest: str, root: Path | None, max_pixels: int) -> None:
        file, self._digest = self.file, digest
        self._images = sorted(content["images"], key=lambda image: image["id"])
        categories = sorted(content["categories"], key=lambda category: category["id"])
        self.classes = tuple(str(category["name"]) for category in categories)
        self.keypoints: Mapping[str, tuple[str, ...]] = {
            str(category["name"]): tuple(category["keypoints"]) for category in categories if category.get("keypoints")
        }
        self._label = {category["id"]: number for number, category in enumerate(categories)}
        self._of_image = _by_image(file, content, self._label)
        if len(set(self.classes)) < len(self.classes):
            raise DataError(f"{file} gives two categories the same name: give each its own")
        if not content["annotations"]:
            raise DataError(f"{file} has no annotations, so there is nothing to detect: name a file with annotations")
        names = [str(image["file_name"]) for image in self._images]
        self._files = Folder(_root(file, root, names), names, (), np.full(len(names), -1, np.int32), 0, max_pixels)
        missing = [name for name in names if not os.path.isfile(self._files.root / name)]
        if missing:
            raise DataError(
                f"{len(missing)} of the {len(names)} images of {file} are not in {self._files.root}, such as"
                f" {missing[0]}: name their folder after #, as in {file.name}#../train2017"
            )
        self._points = max((len(points) for points in self.keypoints.values()), default=0)
        self.has_masks = all(one.get("segmentation") for part in self._of_image.values() for one in part)
        for number in range(len(self)):  # a wrong one would otherwise stop the training hours later
            self._check(number, max_pixels)

    def size(self, number: int) -> tuple[int, int]:
        """Height and width of an image in pixels, from the file."""
        return int(self._images[number]["height"]), int(self._images[number]["width"])

    def instances(self, number: int) -> Instances:
        """The instances in an image."""
        annotations = self._annotations(number)
        return Instances(
            torch.tensor([box for _, box in annotations], dtype=torch.float32).reshape(-1, 4),
            torch.tensor([self._label[one["category_id"]] for one, _ in annotations], dtype=torch.int64),
            torch.tensor([bool(one.get("iscrowd", 0)) for one, _ in annotations], dtype=torch.bool),
            torch.zeros(len(annotations), dtype=torch.bool),
            torch.tensor([float(one.get("area", one["bbox"][2] * one["bbox"][3])) for one, _ in annotations]),
            self._keypoints([one for one, _ in annotations]) if self._points else None,
        )

    def masks(self, number: int) -> tuple[RunLengths, ...]:
        """The mask of each instance; raises `DataError` if some annotation of the file has none."""
        if not self.has_masks:
            raise DataError(f"{self.file} does not have a mask of every instance: name a file with masks")
        return tuple(runs_of(one["segmentation"], *self.size(number)) for one, _ in self._annotations(number))

    def fingerprint(self) -> str:
        """A hash of the file, and of the names and the bytes of at most 32 images evenly spaced among them."""
        return hash_of([self._files.fingerprint(), self._digest])

    def _annotations(self, number: int) -> list[tuple[dict[str, Any], tuple[float, float, float, float]]]:
        """Annotations and boxes of an image, without boxes that have no area."""
        height, width = self.size(number)
        annotations = [(one, _box(one, height, width)) for one in self._of_image[self._images[number]["id"]]]
        return [(one, box) for one, box in annotations if box[2] > box[0] and box[3] > box[1]]

    def _check(self, number: int, max_pixels: int) -> None:
        """The size, the numbers and the masks of an image."""
        height, width = self.size(number)
        if min(height, width) < 1 or height * width > max_pixels:
            raise DataError(f"{self.name(number)} has {width:,} x {height:,} pixels in {self.file.name}: correct that")
        for one, _ in self._annotations(number):
            self._points_of(one)
            if not math.isfinite(one.get("area", 0)):
                raise ValueError(f"an area of {one['area']}")
            if self.has_masks:
                where = f"annotation {one.get('id')} of image {one['image_id']} in {self.file.name}"
                check_mask(one["segmentation"], one["bbox"], height, width, where)

    def _keypoints(self, annotations: Sequence[Mapping[str, Any]]) -> Tensor:
        rows = torch.zeros(len(annotations), self._points, 3)
        for row, one in zip(rows, annotations, strict=True):
            if numbers := self._points_of(one):
                row.copy_(torch.tensor(numbers, dtype=torch.float32).view(-1, 3))
        return rows

    def _points_of(self, one: Mapping[str, Any]) -> list[float]:
        """x, y and visibility of each keypoint; nothing if an instance has none."""
        numbers = [float(number) for number in one.get("keypoints") or []] if self._points else []
        if numbers and len(numbers) != 3 * self._points:
            raise DataError(
                f"annotation {one.get('id')} in {self.file.name} has {len(numbers)} numbers for {self._points}"
                " keypoints: give x, y and visibility of each"
            )
        return numbers


def _read_file(file: Path) -> tuple[dict[str, Any], str]:
    """The content of a file, checked, and a hash of it."""
    try:
        raw = file.read_bytes()
        content = json.loads(raw)
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is not JSON: {error}") from error
    missing = [
        key
        for key in ("images", "categories", "annotations")
        if not isinstance(content, dict) or not isinstance(content.get(key), list)
    ]
    if missing:
        raise DataError(f"{file} has no list of {', '.join(missing)}: name a file such as instances_train2017.json")
    for key, fields in (
        ("images", ("id", "file_name", "height", "width")),
        ("categories", ("id", "name")),
        ("annotations", ("image_id", "category_id", "bbox")),
    ):
        for one in content[key]:
            absent = [field for field in fields if field not in one]
            if absent:
                raise DataError(f"{file}: one of its {key} ({str(one)[:80]}) has no {', '.join(absent)}")
    if not content["images"]:
        raise DataError(f"{file} names no images")
    return content, hash_of([raw])


def _by_image(file: Path, content: Mapping[str, Any], label: Mapping[int, int]) -> dict[int, list[dict[str, Any]]]:
    of_image: dict[int, list[dict[str, Any]]] = {image["id"]: [] for image in content["images"]}
    for one in content["annotations"]:
        if one["image_id"] not in of_image:
            raise DataError(
                f"{file}: annotation {one.get('id')} is of image {one['image_id']}, which is not in the file"
            )
        if one["category_id"] not in label:
            raise DataError(
                f"{file}: annotation {one.get('id')} is of category {one['category_id']}, which is not in the file"
            )
        if len(one["bbox"]) != 4:
            raise DataError(f"{file}: the box of annotation {one.get('id')} is {one['bbox']}; give x, y, width, height")
        of_image[one["image_id"]].append(one)
    return of_image


def _root(file: Path, root: Path | None, names: Sequence[str]) -> Path:
    """The folder of the images: `root`, or the first of COCO's usual folders that holds the first image."""
    if root is not None:
        return root
    above, split = file.absolute().parent.parent, file.stem.rpartition("_")[2]
    folders = (file.parent, above / split, above / "images" / split, above / "images", above)
    return next((folder for folder in folders if os.path.isfile(folder / names[0])), above / split)


def _box(one: Mapping[str, Any], height: int, width: int) -> tuple[float, float, float, float]:
    left, top, box_width, box_height = (float(value) for value in one["bbox"])
    return max(0.0, left), max(0.0, top), min(float(width), left + box_width), min(float(height), top + box_height)
