"""PASCAL VOC: a list of images, and an XML file of boxes for each.

n: instances in an image   h, w: height and width in pixels
"""

import os
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import torch

from vantage.data.decode import MAX_PIXELS
from vantage.data.sources.folder import Folder
from vantage.errors import DataError
from vantage.evaluate.protocols.detection.sources.annotated import AnnotatedFolder, Instances, RunLengths
from vantage.storage.cache import hash_of

__all__ = ["VOC_CLASSES", "VocImages"]

VOC_CLASSES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable", "dog"),
    *("horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"),
)
"""The twenty classes of VOC 2007 to 2012."""


class VocImages(AnnotatedFolder):
    """A split, such as trainval or test, of a folder such as VOCdevkit/VOC2007, with the boxes of each image.

    The files count pixels from 1 and include the last, so a box (1, 1, 1, 1) is one pixel: here 0, 0, 1, 1. Classes are
    the twenty of VOC, or, if the boxes have any other, those of the boxes in alphabetical order. Raises `DataError`
    for lists, images or boxes that are missing or unreadable.
    """

    def __init__(self, root: Path, split: str, max_pixels: int = MAX_PIXELS) -> None:
        names = _split(root, split)
        annotations = [_read_annotation(root / "Annotations" / f"{name}.xml") for name in names]
        labels = {label for _, boxes in annotations for label, *_ in boxes}
        if not labels:
            raise DataError(f"{root}#{split} has no box in any image, so there is nothing to detect")
        self.classes = VOC_CLASSES if labels <= set(VOC_CLASSES) else tuple(sorted(labels))
        self.keypoints: Mapping[str, tuple[str, ...]] = {}
        self.has_masks = False
        files = [f"JPEGImages/{name}.jpg" for name in names]
        missing = [name for name in files if not os.path.isfile(root / name)]
        if missing:
            raise DataError(
                f"{len(missing)} of {len(files)} images of {root}#{split} are missing, such as {missing[0]}"
            )
        self._files = Folder(root, files, (), np.full(len(files), -1, np.int32), 0, max_pixels)
        self._annotations, self._stated_in = annotations, "its XML"

    def size(self, number: int) -> tuple[int, int]:
        """Height and width of an image in pixels, from its XML."""
        return self._annotations[number][0]

    def instances(self, number: int) -> Instances:
        """The boxes of an image."""
        boxes = self._annotations[number][1]
        box = torch.tensor([box for _, _, box in boxes], dtype=torch.float32).reshape(-1, 4)
        return Instances(
            box,
            torch.tensor([self.classes.index(name) for name, _, _ in boxes], dtype=torch.int64),
            torch.zeros(len(boxes), dtype=torch.bool),
            torch.tensor([difficult for _, difficult, _ in boxes], dtype=torch.bool),
            (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1]),
        )

    def masks(self, number: int) -> tuple[RunLengths, ...]:
        """Raises `DataError`: the XML files have boxes only."""
        raise DataError(f"{self._files.root} has boxes, but no masks: name a COCO file with masks")

    def fingerprint(self) -> str:
        """A hash of all names and boxes, and of the bytes of at most 32 images evenly spaced among them."""
        return hash_of([self._files.fingerprint(), "\n".join(self.classes), repr(self._annotations)])


_Box = tuple[float, float, float, float]


def _split(root: Path, split: str) -> list[str]:
    path = root / "ImageSets" / "Main" / f"{split}.txt"
    try:
        names = [line.split()[0] for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read the split {path}: {getattr(error, 'strerror', error)}") from error
    if not names:
        raise DataError(f"{path} names no images")
    return names


def _read_annotation(path: Path) -> tuple[tuple[int, int], list[tuple[str, bool, _Box]]]:
    """Height and width of an image, and name, difficulty and box of each instance."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, LookupError, ValueError, ElementTree.ParseError) as error:  # of an encoding, and of a name
        raise DataError(f"cannot read the boxes in {path}: {error}") from error
    try:
        size = (int(root.findtext("size/height", "")), int(root.findtext("size/width", "")))
        boxes = [_instance(one, size) for one in root.iter("object")]
    except ValueError as error:
        raise DataError(f"{path} has a size or a box that is not a number ({error})") from error
    if min(size) < 1:  # some programs write 0, and every box would be clipped to nothing
        raise DataError(f"{path} says that its image has {size[1]} x {size[0]} pixels: correct the size")
    return size, [box for box in boxes if box[2][2] > box[2][0] and box[2][3] > box[2][1]]


def _instance(one: ElementTree.Element, size: tuple[int, int]) -> tuple[str, bool, _Box]:
    left, top, right, bottom = (float(one.findtext(f"bndbox/{side}", "")) for side in ("xmin", "ymin", "xmax", "ymax"))
    box = (max(0.0, left - 1), max(0.0, top - 1), min(float(size[1]), right), min(float(size[0]), bottom))
    return one.findtext("name", "").strip(), one.findtext("difficult", "0").strip() == "1", box
