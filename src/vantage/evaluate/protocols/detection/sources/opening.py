"""Annotated images at a path, and their split into training and test images."""

import os
from collections.abc import Sequence
from pathlib import Path

from vantage import draws
from vantage.data.decode import MAX_PIXELS
from vantage.data.sources.multi_label import voc_splits
from vantage.errors import DataError, UserError
from vantage.evaluate.protocols.detection.sources.annotated import AnnotatedSource
from vantage.evaluate.protocols.detection.sources.coco import CocoImages
from vantage.evaluate.protocols.detection.sources.selections import SelectedImages, join
from vantage.evaluate.protocols.detection.sources.voc import VocImages

__all__ = ["open_annotated", "split_annotated"]


def open_annotated(path: str | Path, max_pixels: int = MAX_PIXELS) -> AnnotatedSource:
    """The annotated images at a path:

    * a COCO file, such as `coco/annotations/instances_train2017.json`; the images are looked for beside it (in
      `coco/train2017`, as in COCO), or in the folder named after `#`, relative to the file: `boxes.json#images`
    * a folder of PASCAL VOC with its split, such as `VOCdevkit/VOC2007#trainval`
    * several of them, separated by commas: `VOC2007#trainval,VOC2012#trainval`

    Raises `DataError`, which names what is missing, or named twice, and what to do.
    """
    name = str(path)
    if not Path(name).exists() and "," in name:
        parts = [part.strip() for part in name.split(",") if part.strip()]
        _check_once(parts)
        return join([_open_one(part, max_pixels) for part in parts])
    return _open_one(name, max_pixels)


def split_annotated(source: AnnotatedSource) -> tuple[AnnotatedSource, AnnotatedSource]:
    """Training and test images of one source: a fifth of all images, always the same ones, is for testing. Raises
    `UserError` for fewer than three images."""
    count = round(0.2 * len(source))
    if not count:
        raise UserError(f"{len(source)} images are too few to hold out 20% of them: name test images")
    order = draws.permutation(len(source), draws.mix(0, draws.Purpose.HELD_OUT_BOXES))
    return SelectedImages(source, order[count:].sort().values), SelectedImages(source, order[:count].sort().values)


def _check_once(parts: Sequence[str]) -> None:
    first: dict[tuple[Path, str], str] = {}
    for part in parts:
        path, split = _split(part)
        earlier = first.setdefault((path.resolve(), split), part)
        if earlier is not part:
            again = f" again as {part}" if earlier != part else " twice"
            raise DataError(f"{earlier} is named{again}: its images would count twice, so name it once")


def _split(name: str) -> tuple[Path, str]:
    """Path and part."""
    path = Path(os.path.expanduser(name))
    if path.exists() or "#" not in name:
        return path, ""
    before, _, part = name.rpartition("#")
    return Path(os.path.expanduser(before)), part


def _open_one(name: str, max_pixels: int) -> AnnotatedSource:
    path, part = _split(name)
    if not path.exists():
        raise DataError(f"{path} does not exist. Check the path")
    if path.is_file():
        if path.suffix != ".json":
            raise DataError(
                f"{path} is not a COCO file: detection needs boxes. Name a .json file, or a folder of PASCAL VOC with"
                " its split, such as VOC2007#trainval (unpack tars first)"
            )
        return CocoImages(path, path.parent / part if part else None, max_pixels)
    splits = voc_splits(path)
    if part in splits:
        return VocImages(path, part, max_pixels)
    if splits:
        raise DataError(f"{name} is a folder of PASCAL VOC: name a split after # ({', '.join(splits)})")
    files = sorted(str(file.relative_to(path)) for file in [*path.glob("*.json"), *path.glob("annotations/*.json")])
    hint = (
        f"Name one of its files: {', '.join(files[:4])}"
        if files
        else "Name a COCO file (.json) or a folder of PASCAL VOC"
    )
    raise DataError(f"{path} is a folder without annotations that can be read. {hint}")
