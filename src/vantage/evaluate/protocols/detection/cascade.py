"""Cascade R-CNN: three heads one after the other, each on the boxes of the one before (Cai and Vasconcelos, CVPR 2018).

As in Detectron2's configurations, on torchvision's parts: a region counts as an instance from an IoU of .5, .6 and .7,
boxes are the same for all classes, the gradient that reaches the features is divided by three, scores are the mean of
the three heads and boxes those of the last. Masks are learned on the regions of the first head, and predicted on the
last boxes.

r: regions of all images   k: classes and the background   c: channels   d: width of a region's features
"""

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torchvision.models.detection._utils import BoxCoder, Matcher
from torchvision.models.detection.roi_heads import RoIHeads, maskrcnn_inference, maskrcnn_loss
from torchvision.ops import box_iou, clip_boxes_to_image, remove_small_boxes

from vantage.errors import UserError
from vantage.evaluate.protocols.detection.detector import Detector
from vantage.evaluate.protocols.detection.networks import Pyramid, box_head_layers
from vantage.evaluate.protocols.detection.outputs import Keypoints, Output
from vantage.evaluate.protocols.detection.sizes import Sizes
from vantage.frozen.encoder import FrozenEncoder

__all__ = ["Cascade", "CascadeHeads"]

_OVERLAPS = (0.5, 0.6, 0.7)
_SCALES = ((10.0, 10.0, 5.0, 5.0), (20.0, 20.0, 10.0, 10.0), (30.0, 30.0, 15.0, 15.0))
_LEAST_SIDE = 1e-2  # pixels: torchvision drops boxes below it

Regions = list[Float[Tensor, "_ 4"]]
Targets = list[dict[str, Tensor]]


@dataclass(frozen=True)
class Cascade:
    """Three heads one after the other on a feature pyramid."""

    pyramid: Pyramid = field(default_factory=Pyramid)
    """The pyramid, and whether its heads have BatchNorm. Twice as many regions are proposed in training."""

    def build(self, encoder: FrozenEncoder, classes: int, output: Output, sizes: Sizes) -> Detector:
        """The network for `classes` classes with the backbone's weights; the rest is drawn from torch's generator."""
        if isinstance(output, Keypoints):
            raise UserError("a cascade detects boxes and masks: for keypoints use the protocol keypoints")
        detector = self.pyramid.build(encoder, classes, output, sizes, proposals=2 * sizes.proposals)
        model: Any = detector.model
        model.roi_heads = CascadeHeads(model.roi_heads, classes + 1, self.pyramid.normed_heads)
        return detector


class CascadeHeads(nn.Module):
    """Three heads in the place of torchvision's `RoIHeads`."""

    def __init__(self, heads: RoIHeads, classes: int, batch_norm: bool) -> None:
        """`heads` gives its pooling, sampling, thresholds and masks; its head of boxes is the first of the three.
        `classes` counts the background."""
        super().__init__()
        self.box_heads = nn.ModuleList([heads.box_head, box_head_layers(batch_norm), box_head_layers(batch_norm)])
        width = heads.box_predictor.cls_score.in_features
        self.predictors = nn.ModuleList(Predictor(width, classes) for _ in _OVERLAPS)
        heads.box_head = heads.box_predictor = nn.Identity()
        self.heads = heads
        self.coders = [BoxCoder(scale) for scale in _SCALES]
        self.matchers = [Matcher(least, least, allow_low_quality_matches=False) for least in _OVERLAPS]
        self.region_counts = dict[str, float]()
        """For each box loss of the last step, the number of regions over which it is the mean."""

    def forward(
        self,
        features: dict[str, Float[Tensor, "_ c _ _"]],
        proposals: Regions,
        image_shapes: list[tuple[int, int]],
        targets: Targets | None = None,
    ) -> tuple[list[dict[str, Tensor]], dict[str, Tensor]]:
        """Detections in testing; losses in training."""
        if self.training:
            assert targets is not None
            return [], self._losses(features, proposals, image_shapes, targets)
        return self._detections(features, proposals, image_shapes), {}

    def _losses(
        self, features: dict[str, Tensor], proposals: Regions, shapes: list[tuple[int, int]], targets: Targets
    ) -> dict[str, Tensor]:
        regions, instances, labels, _ = self.heads.select_training_samples(proposals, targets)
        losses = self._mask_loss(features, regions, instances, labels, shapes, targets)
        for stage in range(len(_OVERLAPS)):
            if stage:
                instances, labels = self._match(stage, regions, targets)
            scores, codes = self._predict(stage, features, regions, shapes)
            target_codes = self.coders[stage].encode(_boxes_of(targets, instances), regions)
            label = torch.cat(labels)
            losses[f"loss_classifier_{stage + 1}"] = F.cross_entropy(scores, label)
            losses[f"loss_box_reg_{stage + 1}"] = box_loss(codes, torch.cat(list(target_codes)), label)
            self.region_counts |= {f"loss_classifier_{stage + 1}": len(label), f"loss_box_reg_{stage + 1}": len(label)}
            regions = self._refine(stage, codes.detach(), regions, shapes)
            regions = [region[remove_small_boxes(region, _LEAST_SIDE)] for region in regions]
        return losses

    def _detections(
        self, features: dict[str, Tensor], regions: Regions, shapes: list[tuple[int, int]]
    ) -> list[dict[str, Tensor]]:
        probability = []
        for stage in range(len(_OVERLAPS)):
            scores, codes = self._predict(stage, features, regions, shapes)
            probability.append(scores.softmax(1))
            regions = self._refine(stage, codes, regions, shapes)
        log_mean = torch.stack(probability).mean(0).log()  # torchvision takes the softmax
        zero_codes = log_mean.new_zeros(len(log_mean), 4 * log_mean.shape[1])
        detections = zip(*self.heads.postprocess_detections(log_mean, zero_codes, regions, shapes), strict=True)
        predictions = [{"boxes": boxes, "labels": labels, "scores": scores} for boxes, scores, labels in detections]
        if self.heads.has_mask():
            boxes, labels = ([each[name] for each in predictions] for name in ("boxes", "labels"))
            masks_of = maskrcnn_inference(self._masks(features, boxes, shapes), labels)
            for each, masks in zip(predictions, masks_of, strict=True):
                each["masks"] = masks
        return predictions

    def _predict(
        self, stage: int, features: dict[str, Tensor], regions: Regions, shapes: list[tuple[int, int]]
    ) -> tuple[Float[Tensor, "r k"], Float[Tensor, "r 4"]]:
        region_features = self.heads.box_roi_pool(features, regions, shapes)
        if region_features.requires_grad:
            region_features.register_hook(lambda gradient: gradient / len(_OVERLAPS))
        return self.predictors[stage](self.box_heads[stage](region_features))

    def _refine(
        self, stage: int, codes: Float[Tensor, "r 4"], regions: Regions, shapes: list[tuple[int, int]]
    ) -> Regions:
        """The boxes that a head makes of its regions."""
        boxes = self.coders[stage].decode(codes, regions)[:, 0].split([len(region) for region in regions])
        return [clip_boxes_to_image(box, shape) for box, shape in zip(boxes, shapes, strict=True)]

    def _match(
        self, stage: int, regions: Regions, targets: Targets
    ) -> tuple[list[Int64[Tensor, "_"]], list[Int64[Tensor, "_"]]]:
        """For each region the number of its instance, and its label: 0 if no instance overlaps enough."""
        instances, labels = [], []
        for region, target in zip(regions, targets, strict=True):
            if not len(target["boxes"]):
                number = torch.zeros(len(region), dtype=torch.int64, device=region.device)
                instances, labels = [*instances, number], [*labels, number]
                continue
            number = self.matchers[stage](box_iou(target["boxes"], region))
            instances.append(number.clamp(min=0))
            labels.append(torch.where(number < 0, 0, target["labels"][instances[-1]]))
        return instances, labels

    def _mask_loss(
        self,
        features: dict[str, Tensor],
        regions: Regions,
        instances: list[Tensor],
        labels: list[Tensor],
        shapes: list[tuple[int, int]],
        targets: Targets,
    ) -> dict[str, Tensor]:
        if not self.heads.has_mask():
            return {}
        rows = [(label > 0).nonzero()[:, 0] for label in labels]
        positive_regions = [region[row] for region, row in zip(regions, rows, strict=True)]
        numbers = [number[row] for number, row in zip(instances, rows, strict=True)]
        masks, classes = [target["masks"] for target in targets], [target["labels"] for target in targets]
        return {
            "loss_mask": maskrcnn_loss(
                self._masks(features, positive_regions, shapes), positive_regions, masks, classes, numbers
            )
        }

    def _masks(self, features: dict[str, Tensor], regions: Regions, shapes: list[tuple[int, int]]) -> Tensor:
        heads: Any = self.heads
        return heads.mask_predictor(heads.mask_head(heads.mask_roi_pool(features, regions, shapes)))


class Predictor(nn.Module):
    """Scores of the classes, and one box for all of them."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.score, self.box = nn.Linear(width, classes), nn.Linear(width, 4)

    def forward(self, regions: Float[Tensor, "r d"]) -> tuple[Float[Tensor, "r k"], Float[Tensor, "r 4"]]:
        """Logits and codes of a box."""
        return self.score(regions), self.box(regions)


def box_loss(
    codes: Float[Tensor, "r 4"], target_codes: Float[Tensor, "r 4"], label: Int64[Tensor, "r"]
) -> Float[Tensor, ""]:
    """Smooth L1 of the regions with an instance, divided by the number of all; quadratic within 1/9, as in
    torchvision."""
    positive = (label > 0).nonzero()[:, 0]
    return F.smooth_l1_loss(codes[positive], target_codes[positive], beta=1 / 9, reduction="sum") / max(len(label), 1)


def _boxes_of(targets: Targets, instances: list[Tensor]) -> Regions:
    """The box of each region's instance; an arbitrary one if there is none."""
    boxes = [target["boxes"] if len(target["boxes"]) else target["boxes"].new_zeros(1, 4) for target in targets]
    return [box[number] for box, number in zip(boxes, instances, strict=True)]
