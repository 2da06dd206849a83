"""Average precision as COCO defines it (Lin et al., arXiv 1405.0312), by pycocotools.

n: instances found in an image   k: keypoints
"""

import contextlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from vantage.errors import UserError
from vantage.evaluate.protocols.detection.sources.annotated import Annotated, RunLengths
from vantage.evaluate.protocols.detection.sources.masks import coco_tools

__all__ = ["Detections", "Kind", "Precision", "precision_of"]

Kind = Literal["bbox", "segm", "keypoints"]
"""What is compared, by pycocotools' names: boxes, masks or keypoints."""

_COCO_POINTS = 17
_NAMES = {
    "bbox": ("AP", "AP50", "AP75", "AP small", "AP medium", "AP large", "AR 1", "AR 10", "AR 100"),
    "keypoints": ("AP", "AP50", "AP75", "AP medium", "AP large", "AR", "AR50", "AR75"),
}
_NAMES["segm"] = _NAMES["bbox"]


@dataclass(frozen=True)
class Detections:
    """What a detector found in one image, on the CPU."""

    box: Float[Tensor, "n 4"]
    """Left, top, right, bottom in pixels of the image as it is."""
    label: Int[Tensor, "n"]
    """Index of the class in the source's `classes`."""
    score: Float[Tensor, "n"]
    """How sure the detector is, 0 to 1."""
    masks: tuple[RunLengths, ...] | None = None
    """Pixels of each."""
    points: Float[Tensor, "n k 3"] | None = None
    """Column, row and a third number that is not looked at, of each keypoint."""


@dataclass(frozen=True)
class Precision:
    """Average precision over all images, in percent."""

    measures: dict[str, float | None]
    """By COCO's names, of which VOC has the first three: AP is the mean over classes and IoU (for keypoints, OKS) .5 to
    .95. None where the test images have nothing of the size that is meant."""

    of_class: dict[str, float | None]
    """AP of each class; None for classes that no test image shows."""


def precision_of(source: Annotated, found: Sequence[Detections], kind: Kind) -> Precision:
    """Compare what was found in each image of a source, in order, with what is there: by boxes, masks or keypoints.

    Crowds and difficult instances are not counted, whether found or not; a crowd may be found any number of times, as
    COCO has it. Keypoints are compared with COCO's deviations, which are those of its 17 points. Raises `UserError`
    for other numbers of points, where there is nothing to be found, and where pycocotools is not installed.
    """
    if len(found) != len(source):
        raise UserError(f"there are results of {len(found)} images, but {len(source)} images")
    points = {len(names) for names in source.keypoints.values()}
    if kind == "keypoints" and points != {_COCO_POINTS}:
        raise UserError(
            f"the images have {' or '.join(map(str, sorted(points))) or 'no'} keypoints, but average precision of"
            " keypoints is defined by how exactly people mark COCO's 17: give images with those"
        )
    truth = list(_truth(source, kind))
    if not any(not one["iscrowd"] and not one["difficult"] for one in truth):
        raise UserError("no test image shows anything to be found (crowds and difficult ones do not count)")
    with contextlib.redirect_stdout(io.StringIO()):
        judge = coco_tools("cocoeval").COCOeval(_set(source, truth), _set(source, list(_results(found, kind))), kind)
        _prepare_with_difficult(judge)
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    measures = {name: _per_cent(value) for name, value in zip(_NAMES[kind], judge.stats, strict=False)}
    table = judge.eval["precision"][:, :, :, 0, -1]  # thresholds, recalls, classes, of all sizes, most detections
    each = (table[:, :, number] for number in range(len(source.classes)))
    means = (_per_cent(part[part > -1].mean() if (part > -1).any() else -1) for part in each)
    return Precision(measures, dict(zip(source.classes, means, strict=True)))


def _truth(source: Annotated, kind: Kind) -> Iterator[dict[str, Any]]:
    count = 0
    for number in range(len(source)):
        shown, size = source.instances(number), source.size(number)
        masks = source.masks(number) if kind == "segm" else ()
        for row in range(len(shown)):
            count += 1  # pycocotools takes an annotation of number 0 for one that nothing was matched with
            one = {
                "id": count,
                "image_id": number + 1,
                "category_id": int(shown.label[row]) + 1,
                "bbox": _corner_and_size(shown.box[row].tolist()),
                "area": float(shown.area[row]),
                "iscrowd": int(shown.crowd[row]),
                "difficult": int(shown.difficult[row]),
            }
            if kind == "segm":
                one["segmentation"] = {"size": list(size), "counts": masks[row].counts}
            if kind == "keypoints" and shown.points is not None:
                points = shown.points[row]
                one |= {"keypoints": points.flatten().tolist(), "num_keypoints": int((points[:, 2] > 0).sum())}
            yield one


def _results(found: Sequence[Detections], kind: Kind) -> Iterator[dict[str, Any]]:
    """Results as pycocotools makes them of a results file: their area is that of what is compared."""
    count = 0
    for number, one in enumerate(found, 1):
        for row in range(len(one.label)):
            count += 1
            box = _corner_and_size(one.box[row].tolist())
            result = {
                **{"id": count, "image_id": number, "category_id": int(one.label[row]) + 1, "iscrowd": 0},
                **{"score": float(one.score[row]), "bbox": box, "area": box[2] * box[3]},
            }
            if kind == "segm":
                assert one.masks is not None, "masks are judged where there are masks"
                runs = {"size": [one.masks[row].height, one.masks[row].width], "counts": one.masks[row].counts}
                result |= {"segmentation": runs, "area": int(coco_tools("mask").area(runs))}
            if kind == "keypoints":
                assert one.points is not None, "keypoints are judged where there are keypoints"
                columns, rows = one.points[row, :, 0], one.points[row, :, 1]
                across, down = float(columns.max() - columns.min()), float(rows.max() - rows.min())
                extent = [float(columns.min()), float(rows.min()), across, down]
                told = one.points[row].flatten().tolist()
                result |= {"keypoints": told, "bbox": extent, "area": across * down}
            yield result


def _set(source: Annotated, annotations: list[dict[str, Any]]) -> Any:
    """The annotations as pycocotools holds a file."""
    made = coco_tools("coco").COCO()
    made.dataset = {
        "images": [
            {"id": number + 1, "height": source.size(number)[0], "width": source.size(number)[1]}
            for number in range(len(source))
        ],
        "categories": [{"id": number, "name": name} for number, name in enumerate(source.classes, 1)],
        "annotations": annotations,
    }
    made.createIndex()
    return made


def _prepare_with_difficult(judge: Any) -> None:
    """pycocotools leaves out crowds only, and overwrites what a file says of others."""
    prepare = judge._prepare

    def prepared() -> None:
        prepare()
        for own in judge._gts.values():
            for one in own:
                one["ignore"] = one["ignore"] or one["difficult"]

    judge._prepare = prepared


def _corner_and_size(box: Sequence[float]) -> list[float]:
    left, top, right, bottom = box
    return [left, top, right - left, bottom - top]


def _per_cent(value: Any) -> float | None:
    return None if float(value) < 0 else 100.0 * float(np.float64(value))
