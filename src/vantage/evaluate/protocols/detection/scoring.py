"""Average precision as COCO defines it (Lin et al., arXiv 1405.0312), by pycocotools.

n: detections in an image   k: keypoints
"""

import contextlib
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from safetensors.torch import load, save
from torch import Tensor

from vantage.errors import UserError
from vantage.evaluate.protocols.detection.sources.annotated import AnnotatedSource, RunLengths
from vantage.evaluate.protocols.detection.sources.masks import coco_tools

__all__ = ["Detections", "Kind", "Precision", "check_points", "check_shown", "precision_of"]

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
    """What a detector finds in one image, on the CPU."""

    box: Float[Tensor, "n 4"]
    """Left, top, right, bottom in pixels of the original image."""
    label: Int[Tensor, "n"]
    """Index of the class in the source's `classes`."""
    score: Float[Tensor, "n"]
    """Confidence, from 0 to 1."""
    masks: tuple[RunLengths, ...] | None = None
    """Mask of each."""
    points: Float[Tensor, "n k 3"] | None = None
    """Column, row and a third number, which is ignored, of each keypoint."""

    def to_bytes(self) -> UInt8[Tensor, "_"]:
        """All fields as bytes, which processes can exchange."""
        tensors = {"box": self.box, "label": self.label, "score": self.score}
        tensors |= {} if self.points is None else {"points": self.points}
        for number, mask in enumerate(self.masks or ()):
            tensors[f"mask {number}"] = torch.from_numpy(np.frombuffer(mask.counts, np.uint8).copy())
        sizes = None if self.masks is None else [[mask.height, mask.width] for mask in self.masks]
        content = save({name: value.contiguous() for name, value in tensors.items()}, {"sizes": json.dumps(sizes)})
        return torch.frombuffer(bytearray(content), dtype=torch.uint8)

    @classmethod
    def from_bytes(cls, content: UInt8[Tensor, "_"]) -> "Detections":
        """The detections that `to_bytes` wrote."""
        data = content.numpy().tobytes()
        tensors, header = load(data), json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        sizes, masks = json.loads(header["__metadata__"]["sizes"]), None
        if sizes is not None:
            runs = [tensors[f"mask {number}"].numpy().tobytes() for number in range(len(sizes))]
            masks = tuple(RunLengths(height, width, one) for (height, width), one in zip(sizes, runs, strict=True))
        return cls(tensors["box"], tensors["label"], tensors["score"], masks, tensors.get("points"))


@dataclass(frozen=True)
class Precision:
    """Average precision over all images, in percent."""

    measures: dict[str, float | None]
    """Named as by COCO; VOC has only the first three. AP is the mean over classes and over IoU (for keypoints, OKS)
    from .5 to .95. None if the test images have nothing of that size."""

    of_class: dict[str, float | None]
    """AP of each class; None for classes that are in no test image."""


def precision_of(source: AnnotatedSource, detections: Sequence[Detections], kind: Kind) -> Precision:
    """Compare the detections in each image of a source, in order, with its annotations: by boxes, masks or keypoints.

    Crowds and difficult instances are ignored, whether detected or not; as in COCO, a crowd may be detected any number
    of times. Raises `UserError` for results of another number of images, for keypoints other than COCO's 17
    (`check_points`), if there is nothing to detect, and if pycocotools is not installed.
    """
    if len(detections) != len(source):
        raise UserError(f"there are results for {len(detections)} images, but the source has {len(source)}")
    if kind == "keypoints":
        check_points(source)
    check_shown(source)
    truth = list(_truth(source, kind))
    with contextlib.redirect_stdout(io.StringIO()):
        results = _coco_of(source, list(_results(detections, kind)))
        evaluator = coco_tools("cocoeval").COCOeval(_coco_of(source, truth), results, kind)
        _ignore_difficult(evaluator)
        evaluator.evaluate()
        evaluator.accumulate()
        evaluator.summarize()
    measures = {name: _per_cent(value) for name, value in zip(_NAMES[kind], evaluator.stats, strict=False)}
    table = evaluator.eval["precision"][:, :, :, 0, -1]  # thresholds, recalls, classes, of all sizes, most detections
    of_class = (table[:, :, number] for number in range(len(source.classes)))
    means = (_per_cent(part[part > -1].mean() if (part > -1).any() else -1) for part in of_class)
    return Precision(measures, dict(zip(source.classes, means, strict=True)))


def check_shown(source: AnnotatedSource) -> None:
    """Raises `UserError` for test images without a single instance that counts: average precision has no value then."""
    instances = map(source.instances, range(len(source)))
    if all(bool((one.crowd | one.difficult).all()) for one in instances):
        raise UserError("no test image shows anything to detect (crowds and difficult instances do not count)")


def check_points(source: AnnotatedSource) -> None:
    """Raises `UserError` for keypoints other than COCO's 17, by whose deviations detections are compared."""
    points = {len(names) for names in source.keypoints.values()}
    if points != {_COCO_POINTS}:
        raise UserError(
            f"the images have {' or '.join(map(str, sorted(points))) or 'no'} keypoints, but average precision of"
            " keypoints is defined by how precisely people mark COCO's 17: give images with those"
        )


def _truth(source: AnnotatedSource, kind: Kind) -> Iterator[dict[str, Any]]:
    count = 0
    for number in range(len(source)):
        instances, size = source.instances(number), source.size(number)
        masks = source.masks(number) if kind == "segm" else ()
        for row in range(len(instances)):
            count += 1  # pycocotools treats an annotation with id 0 as unmatched
            one = {
                "id": count,
                "image_id": number + 1,
                "category_id": int(instances.label[row]) + 1,
                "bbox": _corner_and_size(instances.box[row].tolist()),
                "area": float(instances.area[row]),
                "iscrowd": int(instances.crowd[row]),
                "difficult": int(instances.difficult[row]),
            }
            if kind == "segm":
                one["segmentation"] = {"size": list(size), "counts": masks[row].counts}
            if kind == "keypoints" and instances.points is not None:
                points = instances.points[row]
                one |= {"keypoints": points.flatten().tolist(), "num_keypoints": int((points[:, 2] > 0).sum())}
            yield one


def _results(detections: Sequence[Detections], kind: Kind) -> Iterator[dict[str, Any]]:
    """Results as pycocotools reads them from a results file; the area is that of the box, mask or points compared."""
    count = 0
    for number, one in enumerate(detections, 1):
        for row in range(len(one.label)):
            count += 1
            box = _corner_and_size(one.box[row].tolist())
            result = {
                **{"id": count, "image_id": number, "category_id": int(one.label[row]) + 1, "iscrowd": 0},
                **{"score": float(one.score[row]), "bbox": box, "area": box[2] * box[3]},
            }
            if kind == "segm":
                assert one.masks is not None, "masks are compared only if there are masks"
                runs = {"size": [one.masks[row].height, one.masks[row].width], "counts": one.masks[row].counts}
                result |= {"segmentation": runs, "area": int(coco_tools("mask").area(runs))}
            if kind == "keypoints":
                assert one.points is not None, "keypoints are compared only if there are keypoints"
                columns, rows = one.points[row, :, 0], one.points[row, :, 1]
                width, height = float(columns.max() - columns.min()), float(rows.max() - rows.min())
                extent = [float(columns.min()), float(rows.min()), width, height]
                numbers = one.points[row].flatten().tolist()
                result |= {"keypoints": numbers, "bbox": extent, "area": width * height}
            yield result


def _coco_of(source: AnnotatedSource, annotations: list[dict[str, Any]]) -> Any:
    """The annotations as pycocotools would hold them after reading a file."""
    coco = coco_tools("coco").COCO()
    coco.dataset = {
        "images": [
            {"id": number + 1, "height": source.size(number)[0], "width": source.size(number)[1]}
            for number in range(len(source))
        ],
        "categories": [{"id": number, "name": name} for number, name in enumerate(source.classes, 1)],
        "annotations": annotations,
    }
    coco.createIndex()
    return coco


def _ignore_difficult(evaluator: Any) -> None:
    """Ignore difficult instances too: pycocotools ignores only crowds, and overwrites the flags of a file."""
    prepare = evaluator._prepare

    def prepare_with_difficult() -> None:
        prepare()
        for annotations in evaluator._gts.values():
            for one in annotations:
                one["ignore"] = one["ignore"] or one["difficult"]

    evaluator._prepare = prepare_with_difficult


def _corner_and_size(box: Sequence[float]) -> list[float]:
    left, top, right, bottom = box
    return [left, top, right - left, bottom - top]


def _per_cent(value: Any) -> float | None:
    return None if float(value) < 0 else 100.0 * float(np.float64(value))
