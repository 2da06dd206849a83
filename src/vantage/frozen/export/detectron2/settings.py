"""Settings, in Detectron2's format, of the detectors that papers train from a contrastive backbone.

Fine-tuned: every layer learns (FREEZE_AT 0), and BatchNorm is synchronized and added to new layers: after the last
stage of C4 heads (MoCo, arXiv 1911.05722, §4.2; the head is in train_net.py), and to the feature pyramid and the heads
on it (InfoMin, arXiv 2005.10243, appendix D, whose released box heads have four convolutions). With "-plain-heads" it
is added to the pyramid alone, and the heads are Detectron2's own, with box heads of two layers (MoCo; JCL, arXiv
2009.14776, §4.3). Frozen: the backbone does not learn (FREEZE_AT 5), and the rest is Detectron2's default (Ring,
appendix D).

Pascal VOC: 24,000 steps; the learning rate falls at 18,000 and 22,000. COCO: "1x" is 90,000 steps, "2x" 180,000, "6x"
540,000; as released, the learning rate falls at 2/3 and 8/9 of the steps, but for "6x" 60,000 and 20,000 steps before
the end. A step has 16 images, and the learning rate is .02.

Detectron2 subtracts PIXEL_MEAN from values of 0 to 255 in the order of INPUT.FORMAT. Both are RGB here, in the order
of the statistics that the backbone was trained with; Detectron2's default is BGR.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vantage.encoders.backbones.resnet import ResNet
from vantage.views.colors.statistics import Statistics

__all__ = ["detectors"]

Settings = dict[str, Any]

_SCHEDULES = {"1x": (60_000, 80_000, 90_000), "2x": (120_000, 160_000, 180_000), "6x": (480_000, 520_000, 540_000)}
_VOC = (18_000, 22_000, 24_000)
_SHORT_SIDES_COCO, _SHORT_SIDES_VOC = list(range(640, 801, 32)), list(range(480, 801, 32))
_PYRAMID = ["res2", "res3", "res4", "res5"]


@dataclass(frozen=True)
class _Backbone:
    """What all files of a folder share."""

    choice: ResNet
    statistics: Statistics
    weights: str
    weights_c4: str


def detectors(choice: ResNet, statistics: Statistics, weights: str, weights_c4: str) -> dict[str, Settings]:
    """Settings by name, such as `coco-mask-rcnn-fpn-1x`. `weights` is the file for pyramids, `weights_c4` the file for
    C4 detectors."""
    backbone = _Backbone(choice, statistics, weights, weights_c4)
    with_trainable = {"voc-faster-rcnn-c4-24k": _merge(_c4(backbone, freeze=False), _voc())}
    with_frozen = {"voc-faster-rcnn-c4-24k-frozen": _merge(_c4(backbone, freeze=True), _voc())}
    for length in _SCHEDULES:
        with_trainable[f"coco-mask-rcnn-c4-{length}"] = _merge(_c4(backbone, freeze=False), _MASK, _coco(length))
        for kind, change in _ON_PYRAMIDS.items():
            with_trainable[f"coco-{kind}-fpn-{length}"] = _merge(_fpn(backbone, freeze=False), _coco(length), change)
            if length != "6x" and not kind.startswith("cascade"):
                plain = _merge(_fpn(backbone, freeze=False, plain_heads=True), _coco(length), change)
                with_trainable[f"coco-{kind}-fpn-{length}-plain-heads"] = plain
    for kind, change in _ON_PYRAMIDS.items():
        with_frozen[f"coco-{kind}-fpn-1x-frozen"] = _merge(_fpn(backbone, freeze=True), _coco("1x"), change)
    return with_trainable | with_frozen


def _images_and_network(backbone: _Backbone, weights: str, freeze: bool) -> Settings:
    choice, statistics = backbone.choice, backbone.statistics
    return {
        "VERSION": 2,
        "MODEL": {
            "META_ARCHITECTURE": "GeneralizedRCNN",
            "WEIGHTS": weights,
            "PIXEL_MEAN": [round(255 * value, 6) for value in statistics.mean],
            "PIXEL_STD": [round(255 * value, 6) for value in statistics.std],
            "BACKBONE": {"FREEZE_AT": 5 if freeze else 0},
            "RESNETS": {
                "DEPTH": choice.depth,
                "NUM_GROUPS": choice.groups,
                "WIDTH_PER_GROUP": choice.width_per_group * choice.stem_width // 64,
                "RES2_OUT_CHANNELS": choice.width // 8,
                "STEM_OUT_CHANNELS": choice.stem_width,
                "STRIDE_IN_1X1": False,
                "NORM": "FrozenBN" if freeze else "SyncBN",
            },
        },
        "INPUT": {"FORMAT": "RGB", "MIN_SIZE_TEST": 800},
        "SOLVER": {"IMS_PER_BATCH": 16, "BASE_LR": 0.02},
        "TEST": {"PRECISE_BN": {"ENABLED": not freeze}},
    }


def _c4(backbone: _Backbone, freeze: bool) -> Settings:
    head = "Res5ROIHeads" if freeze else "Res5ROIHeadsExtraNorm"
    model = {
        "BACKBONE": {"NAME": "build_resnet_backbone"},
        "RESNETS": {"OUT_FEATURES": ["res4"]},
        "RPN": {"PRE_NMS_TOPK_TEST": 6000, "POST_NMS_TOPK_TEST": 1000},
        "ROI_HEADS": {"NAME": head},
        "MASK_ON": False,
    }
    return _merge(_images_and_network(backbone, backbone.weights_c4, freeze), {"MODEL": model})


def _fpn(backbone: _Backbone, freeze: bool, plain_heads: bool = False) -> Settings:
    plain = freeze or plain_heads
    norm, norm_of_heads = "" if freeze else "SyncBN", "" if plain else "SyncBN"
    box = {"NUM_CONV": 0, "NUM_FC": 2} if plain else {"NUM_CONV": 4, "NUM_FC": 1}
    model = {
        "BACKBONE": {"NAME": "build_resnet_fpn_backbone"},
        "RESNETS": {"OUT_FEATURES": _PYRAMID},
        "FPN": {"IN_FEATURES": _PYRAMID, "NORM": norm},
        "ANCHOR_GENERATOR": {"SIZES": [[32], [64], [128], [256], [512]], "ASPECT_RATIOS": [[0.5, 1.0, 2.0]]},
        "RPN": {
            "IN_FEATURES": ["p2", "p3", "p4", "p5", "p6"],
            "PRE_NMS_TOPK_TRAIN": 2000,
            "PRE_NMS_TOPK_TEST": 1000,
            "POST_NMS_TOPK_TRAIN": 1000,
            "POST_NMS_TOPK_TEST": 1000,
        },
        "ROI_HEADS": {"NAME": "StandardROIHeads", "IN_FEATURES": ["p2", "p3", "p4", "p5"]},
        "ROI_BOX_HEAD": {"NAME": "FastRCNNConvFCHead", "POOLER_RESOLUTION": 7, "NORM": norm_of_heads, **box},
        "ROI_MASK_HEAD": {
            "NAME": "MaskRCNNConvUpsampleHead",
            "NUM_CONV": 4,
            "POOLER_RESOLUTION": 14,
            "NORM": norm_of_heads,
        },
        "MASK_ON": False,
    }
    return _merge(_images_and_network(backbone, backbone.weights, freeze), {"MODEL": model})


_MASK: Settings = {"MODEL": {"MASK_ON": True}}
_ON_PYRAMIDS: dict[str, Settings] = {
    "faster-rcnn": {},
    "mask-rcnn": _MASK,
    "cascade-mask-rcnn": {
        "MODEL": {
            "MASK_ON": True,
            "ROI_HEADS": {"NAME": "CascadeROIHeads"},
            "ROI_BOX_HEAD": {"CLS_AGNOSTIC_BBOX_REG": True},
            "RPN": {"POST_NMS_TOPK_TRAIN": 2000},
        }
    },
    "keypoint-rcnn": {
        "MODEL": {
            "KEYPOINT_ON": True,
            "ROI_HEADS": {"NUM_CLASSES": 1},
            "ROI_BOX_HEAD": {"SMOOTH_L1_BETA": 0.5},
            "RPN": {"POST_NMS_TOPK_TRAIN": 1500},
        },
        "DATASETS": {"TRAIN": ["keypoints_coco_2017_train"], "TEST": ["keypoints_coco_2017_val"]},
    },
}


def _voc() -> Settings:
    *milestones, steps = _VOC
    return {
        "MODEL": {"ROI_HEADS": {"NUM_CLASSES": 20}},
        "INPUT": {"MIN_SIZE_TRAIN": _SHORT_SIDES_VOC},
        "DATASETS": {"TRAIN": ["voc_2007_trainval", "voc_2012_trainval"], "TEST": ["voc_2007_test"]},
        "SOLVER": {"STEPS": milestones, "MAX_ITER": steps, "WARMUP_ITERS": 100},
    }


def _coco(length: str) -> Settings:
    *milestones, steps = _SCHEDULES[length]
    return {
        "MODEL": {"ROI_HEADS": {"NUM_CLASSES": 80}},
        "INPUT": {"MIN_SIZE_TRAIN": _SHORT_SIDES_COCO},
        "DATASETS": {"TRAIN": ["coco_2017_train"], "TEST": ["coco_2017_val"]},
        "SOLVER": {"STEPS": milestones, "MAX_ITER": steps},
    }


def _merge(*parts: Mapping[str, Any]) -> Settings:
    """All settings; if several parts have one, the last counts."""
    whole: Settings = {}
    for part in parts:
        for name, value in part.items():
            inner = whole.get(name)
            whole[name] = _merge(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return whole
