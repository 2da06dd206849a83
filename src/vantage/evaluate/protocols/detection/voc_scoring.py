"""Average precision as PASCAL VOC 2007 defines it, which the papers report on VOC.

Everingham et al., "The PASCAL Visual Object Classes (VOC) Challenge", IJCV 88, 2010, §4.2, and the development kit of
2007: precision at 11 recalls. At every overlap of .5 to .95 in steps of .05, as Detectron2's evaluator of VOC takes it,
from which MoCo, InfoMin and InterCLR report AP, AP50 and AP75. Unlike COCO's code it looks only at the instance that a
box overlaps most: a second box on that one is wrong, even where it overlaps another enough as well.

n: boxes found in an image   m: instances in an image   t: thresholds   d: boxes found in all images, most certain first
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torchvision.ops import box_iou

from vantage.errors import UserError
from vantage.evaluate.protocols.detection.scoring import Detections, Precision
from vantage.evaluate.protocols.detection.sources.annotated import Annotated
from vantage.evaluate.protocols.detection.sources.selections import JoinedImages, OfClasses, SelectedImages
from vantage.evaluate.protocols.detection.sources.voc import VocImages

__all__ = ["is_voc", "voc_precision_of"]

_THRESHOLDS = torch.arange(50, 100, 5, dtype=torch.float64) / 100
_RECALLS = torch.arange(11, dtype=torch.float64) / 10


@dataclass(frozen=True)
class _Judged:
    """The boxes of one class that were found in one image."""

    score: Float[Tensor, "n"]
    right: Bool[Tensor, "t n"]
    counts: Bool[Tensor, "t n"]
    """False for what lies on a difficult instance."""


def is_voc(source: Annotated) -> bool:
    """Whether all images come from folders of PASCAL VOC."""
    match source:
        case SelectedImages() | OfClasses():
            return is_voc(source.source)
        case JoinedImages():
            return all(is_voc(part) for part in source.parts)
        case _:
            return isinstance(source, VocImages)


def voc_precision_of(source: Annotated, found: Sequence[Detections]) -> Precision:
    """Compare the boxes found in each image of a source, in order, with what is there; AP, AP50 and AP75 in percent,
    means over the classes that the images show.

    The most certain box comes first, over all images; one is right where it overlaps the instance that it overlaps
    most by more than the threshold (the development kit takes the threshold itself too) and none came before it on
    that one. On a difficult instance a box is neither right nor wrong, and nobody has to find those. Raises `UserError`
    for another number of images, and where nothing counts.
    """
    if len(found) != len(source):
        raise UserError(f"there are results of {len(found)} images, but {len(source)} images")
    tables = [_of_class(source, found, label) for label in range(len(source.classes))]
    shown = [table for table in tables if table is not None]
    if not shown:
        raise UserError("no test image shows anything to be found (difficult ones do not count)")
    mean = torch.stack(shown).mean(0)
    measures: dict[str, float | None] = {"AP": mean.mean().item(), "AP50": mean[0].item(), "AP75": mean[5].item()}
    each = (None if table is None else table.mean().item() for table in tables)
    return Precision(measures, dict(zip(source.classes, each, strict=True)))


def _of_class(source: Annotated, found: Sequence[Detections], label: int) -> Float[Tensor, "t"] | None:
    """AP at each threshold; none where no image shows an instance of the class that counts."""
    judged, wanted = [], 0
    for number, one in enumerate(found):
        shown, own = source.instances(number), one.label == label
        there = shown.label == label
        aside = (shown.difficult | shown.crowd)[there]
        wanted += int((~aside).sum())
        judged.append(_judge(one.box[own], one.score[own], shown.box[there], aside))
    if not wanted:
        return None
    order = torch.cat([one.score for one in judged]).argsort(descending=True, stable=True)
    right = torch.cat([one.right for one in judged], 1)[:, order]
    counts = torch.cat([one.counts for one in judged], 1)[:, order]
    return torch.stack([_at_eleven(hit[told], wanted) for hit, told in zip(right, counts, strict=True)])


def _judge(
    box: Float[Tensor, "n 4"], score: Float[Tensor, "n"], truth: Float[Tensor, "m 4"], aside: Bool[Tensor, "m"]
) -> _Judged:
    order = score.argsort(descending=True, stable=True)
    right = torch.zeros(len(_THRESHOLDS), len(box), dtype=torch.bool)
    counts = torch.ones_like(right)
    if not len(box) or not len(truth):
        return _Judged(score[order], right, counts)
    most, nearest = box_iou(box[order].double(), truth.double()).max(1)
    over = most > _THRESHOLDS[:, None]
    counts = ~(over & aside[nearest])
    for instance in range(len(truth)):
        on_it: Int[Tensor, "t n"] = (over & (nearest == instance)).int()
        right |= (on_it > 0) & (on_it.cumsum(1) == 1)  # the first one alone
    return _Judged(score[order], right & counts, counts)


def _at_eleven(right: Bool[Tensor, "d"], wanted: int) -> Float[Tensor, ""]:
    """Mean over the recalls 0, .1, … 1 of the best precision at that recall or any higher, in percent."""
    hits = right.double().cumsum(0)
    recall, precision = hits / wanted, hits / torch.arange(1, len(right) + 1)
    reached = recall >= _RECALLS[:, None]
    return 100 * torch.where(reached, precision, 0.0).amax(1).mean() if len(right) else torch.zeros(()).double()
