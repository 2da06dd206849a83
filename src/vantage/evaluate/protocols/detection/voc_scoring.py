"""Average precision as defined by PASCAL VOC 2007, which the papers report on VOC.

Everingham et al., "The PASCAL Visual Object Classes (VOC) Challenge", IJCV 88, 2010, §4.2, and the development kit of
2007: precision at 11 recalls; and at every overlap from .5 to .95 in steps of .05, as in Detectron2's evaluator of VOC,
from which MoCo, InfoMin and InterCLR report AP, AP50 and AP75. Unlike COCO's code it considers only the instance that a
box overlaps most: a second box on that instance is wrong, even if it overlaps another one enough.

n: detections in an image   m: instances in an image   t: thresholds   d: detections in all images, most confident first
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torchvision.ops import box_iou

from vantage.errors import UserError
from vantage.evaluate.protocols.detection.scoring import Detections, Precision
from vantage.evaluate.protocols.detection.sources.annotated import AnnotatedSource
from vantage.evaluate.protocols.detection.sources.selections import JoinedImages, OfClasses, SelectedImages
from vantage.evaluate.protocols.detection.sources.voc import VocImages

__all__ = ["is_voc", "voc_precision_of"]

_THRESHOLDS = torch.arange(50, 100, 5, dtype=torch.float64) / 100
_RECALLS = torch.arange(11, dtype=torch.float64) / 10


@dataclass(frozen=True)
class _Matches:
    """The detections of one class in one image."""

    score: Float[Tensor, "n"]
    correct: Bool[Tensor, "t n"]
    counts: Bool[Tensor, "t n"]
    """False for detections of a difficult instance."""


def is_voc(source: AnnotatedSource) -> bool:
    """Whether all images come from folders of PASCAL VOC."""
    match source:
        case SelectedImages() | OfClasses():
            return is_voc(source.source)
        case JoinedImages():
            return all(is_voc(part) for part in source.parts)
        case _:
            return isinstance(source, VocImages)


def voc_precision_of(source: AnnotatedSource, detections: Sequence[Detections]) -> Precision:
    """Compare the detections in each image of a source, in order, with its annotations. Gives AP, AP50 and AP75 in
    percent, as means over the classes that the images show.

    Detections are taken over all images, the most confident first. One is correct if its overlap with the instance
    that it overlaps most exceeds the threshold (the development kit also accepts the threshold itself) and no earlier
    one is on that instance. On a difficult instance a detection is neither correct nor wrong, and missing one costs
    nothing. Raises `UserError` for another number of images, and if nothing counts.
    """
    if len(detections) != len(source):
        raise UserError(f"there are results for {len(detections)} images, but the source has {len(source)}")
    tables = [_of_class(source, detections, label) for label in range(len(source.classes))]
    present = [table for table in tables if table is not None]
    if not present:
        raise UserError("no test image shows anything to detect (difficult instances do not count)")
    mean = torch.stack(present).mean(0)
    measures: dict[str, float | None] = {"AP": mean.mean().item(), "AP50": mean[0].item(), "AP75": mean[5].item()}
    of_class = (None if table is None else table.mean().item() for table in tables)
    return Precision(measures, dict(zip(source.classes, of_class, strict=True)))


def _of_class(source: AnnotatedSource, detections: Sequence[Detections], label: int) -> Float[Tensor, "t"] | None:
    """AP at each threshold; None if no image shows an instance of the class that counts."""
    matches, total = [], 0
    for number, one in enumerate(detections):
        instances, rows = source.instances(number), one.label == label
        truth = instances.label == label
        ignore = (instances.difficult | instances.crowd)[truth]
        total += int((~ignore).sum())
        matches.append(_match(one.box[rows], one.score[rows], instances.box[truth], ignore))
    if not total:
        return None
    order = torch.cat([one.score for one in matches]).argsort(descending=True, stable=True)
    correct = torch.cat([one.correct for one in matches], 1)[:, order]
    counts = torch.cat([one.counts for one in matches], 1)[:, order]
    return torch.stack(
        [_precision_at_eleven_recalls(hits[count], total) for hits, count in zip(correct, counts, strict=True)]
    )


def _match(
    box: Float[Tensor, "n 4"], score: Float[Tensor, "n"], truth: Float[Tensor, "m 4"], ignore: Bool[Tensor, "m"]
) -> _Matches:
    order = score.argsort(descending=True, stable=True)
    correct = torch.zeros(len(_THRESHOLDS), len(box), dtype=torch.bool)
    counts = torch.ones_like(correct)
    if not len(box) or not len(truth):
        return _Matches(score[order], correct, counts)
    overlap, nearest = box_iou(box[order].double(), truth.double()).max(1)
    enough = overlap > _THRESHOLDS[:, None]
    counts = ~(enough & ignore[nearest])
    for instance in range(len(truth)):
        on_it: Int[Tensor, "t n"] = (enough & (nearest == instance)).int()
        correct |= (on_it > 0) & (on_it.cumsum(1) == 1)  # only the first one
    return _Matches(score[order], correct & counts, counts)


def _precision_at_eleven_recalls(correct: Bool[Tensor, "d"], total: int) -> Float[Tensor, ""]:
    """Mean over the recalls 0, .1, … 1 of the best precision at that recall or a higher one, in percent."""
    hits = correct.double().cumsum(0)
    recall, precision = hits / total, hits / torch.arange(1, len(correct) + 1)
    at_least = recall >= _RECALLS[:, None]
    return 100 * torch.where(at_least, precision, 0.0).amax(1).mean() if len(correct) else torch.zeros(()).double()
