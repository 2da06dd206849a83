"""Masks: from COCO's polygons and run lengths to pixels and back, by pycocotools.

h, w: height and width of the image in pixels
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from vantage.errors import DataError, UserError
from vantage.evaluate.protocols.detection.sources.annotated import RunLengths

__all__ = ["check_mask", "coco_tools", "mask_of", "run_lengths", "runs_of", "decompress"]


def coco_tools(part: str) -> ModuleType:
    """A module of pycocotools: coco, cocoeval or mask. Raises `UserError` if it is not installed."""
    import importlib

    try:
        return importlib.import_module(f"pycocotools.{part}")
    except ImportError as missing:
        raise UserError(
            "detection needs pycocotools, which is not installed: pip install 'vantage-ssl[detection]'"
        ) from missing


def check_mask(segmentation: Any, box: Sequence[float | int], height: int, width: int, where: str) -> None:
    """Raises `DataError`, which begins with `where`, for a "segmentation" of a COCO file that does not fit its image or
    its box (x, y, width, height), or is neither polygons nor run lengths."""
    if isinstance(segmentation, dict) and "counts" in segmentation:
        size, counts = list(segmentation.get("size", ())), segmentation["counts"]
        if size != [height, width]:
            raise DataError(
                f"{where}: its mask has size {size} (rows, columns), but the image has [{height}, {width}]: it belongs"
                " to another image"
            )
        runs = counts if isinstance(counts, list) else decompress(counts)
        if not all(isinstance(run, int) and run >= 0 for run in runs) or sum(runs) != height * width:
            raise DataError(
                f"{where}: the runs of its mask cover {sum(runs)} pixels of {height * width}; correct or remove it"
            )
        return
    if not isinstance(segmentation, list):
        raise DataError(f"{where}: its mask is neither polygons nor run lengths; correct or remove the annotation")
    polygons = _polygons(segmentation)
    if not polygons:
        raise DataError(f"{where}: none of its polygons has at least three corners; correct or remove the annotation")
    if not _overlap(polygons, box):
        raise DataError(f"{where}: its mask lies outside its box; correct or remove the annotation")
    far = 10 * max(height, width)  # pycocotools walks along every edge pixel by pixel
    if not all(-far <= value <= far for part in polygons for value in part):
        raise DataError(f"{where}: its mask lies far outside its image; correct or remove the annotation")


def runs_of(segmentation: Any, height: int, width: int) -> RunLengths:
    """A "segmentation" of a COCO file as run lengths: the union of polygons (x, y, x, y, … in pixels), or run lengths,
    compressed or not. Polygons of fewer than three corners are skipped."""
    tools = coco_tools("mask")
    if isinstance(segmentation, list):
        runs = tools.merge(tools.frPyObjects(_polygons(segmentation), height, width))
    elif isinstance(segmentation["counts"], list):
        runs = tools.frPyObjects(segmentation, height, width)
    else:
        counts = segmentation["counts"]
        runs = {"counts": counts.encode() if isinstance(counts, str) else counts}
    return RunLengths(height, width, bytes(runs["counts"]))


def mask_of(runs: RunLengths) -> Bool[Tensor, "h w"]:
    """The pixels of a mask."""
    pixels = coco_tools("mask").decode({"size": [runs.height, runs.width], "counts": runs.counts})
    return torch.from_numpy(np.ascontiguousarray(pixels)).bool()


def run_lengths(mask: Bool[Tensor, "h w"]) -> RunLengths:
    """A mask as run lengths."""
    pixels = np.asfortranarray(mask.cpu().numpy().astype(np.uint8))
    return RunLengths(mask.shape[0], mask.shape[1], bytes(coco_tools("mask").encode(pixels)["counts"]))


def _polygons(segmentation: Sequence[Any]) -> list[list[float | int]]:
    return [part for part in segmentation if isinstance(part, list) and len(part) >= 6 and len(part) % 2 == 0]


def decompress(counts: str) -> list[int]:
    """Run lengths that COCO has compressed to text: five bits per character, the lowest first, and a sixth that says
    whether more follow. From the third run on, the difference from the run two before is stored. Raises `ValueError`
    for other text."""
    runs: list[int] = []
    value = bits = 0
    for character in counts:
        code = ord(character) - 48
        if not 0 <= code < 64 or bits > 60:
            raise ValueError(f"these are not run lengths: {counts[:40]!r}")
        value, bits = value | (code & 31) << bits, bits + 5
        if code & 32:
            continue
        value -= (code & 16) << bits - 4
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value = bits = 0
    if bits:
        raise ValueError("the run lengths are cut short")
    return runs


def _overlap(polygons: Sequence[Sequence[float | int]], box: Sequence[float | int]) -> bool:
    """Whether the extent of polygons overlaps a box."""
    columns = [value for part in polygons for value in part[0::2]]
    rows = [value for part in polygons for value in part[1::2]]
    left, top, width, height = box
    return min(columns) <= left + width and max(columns) >= left and min(rows) <= top + height and max(rows) >= top
