"""Faster, Mask and Keypoint R-CNN on a trained ResNet: on a feature pyramid, or on its fourth stage (C4).

The networks are torchvision's, with the numbers of proposals of Detectron2's configurations. In other respects they
differ from Detectron2, with which the papers' numbers were obtained: the smooth L1 loss of boxes is quadratic within
1/9 (there 0; .5 for keypoints), regions are cut without a half-pixel shift (ROIAlignV2 there) at two samples a side,
and keypoints train on as many proposals as boxes (1,500 there). `vantage export --to detectron2` follows Detectron2.

Pyramid (Lin et al., arXiv 1612.03144): maps of stages 2 to 5, one anchor size per level, BatchNorm on the pyramid's
convolutions if the paper adds it (MoCo, arXiv 1911.05722; JCL; InfoMin).
C4 (He et al., arXiv 1911.05722, §4.2): regions are cut from the map of stage 4; stage 5 is the head on each region,
followed by one more BatchNorm.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.models.detection import FasterRCNN, KeypointRCNN, MaskRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.backbone_utils import BackboneWithFPN
from torchvision.models.detection.faster_rcnn import FastRCNNConvFCHead, FastRCNNPredictor, TwoMLPHead
from torchvision.models.detection.generalized_rcnn import GeneralizedRCNN
from torchvision.models.detection.mask_rcnn import MaskRCNNHeads, MaskRCNNPredictor
from torchvision.ops import MultiScaleRoIAlign

from vantage.encoders.backbones.resnet_features import ResNetFeatures
from vantage.errors import UserError
from vantage.evaluate.protocols.detection.detector import (
    Detector,
    check_detector,
    check_frozen,
    copy_of,
    freeze,
    transform_settings,
)
from vantage.evaluate.protocols.detection.outputs import Boxes, Keypoints, Masks, Output
from vantage.evaluate.protocols.detection.sizes import Sizes
from vantage.frozen.encoder import FrozenEncoder

__all__ = ["FourthStage", "Pyramid", "box_head_layers"]

_WIDTH = 256  # of the pyramid's maps, and of C4's mask head


@dataclass(frozen=True)
class Pyramid:
    """Maps of four stages of the backbone on a feature pyramid."""

    frozen_stages: int = 0
    """Frozen stages of the backbone, BatchNorm included: 0 (all learn), 1 (the stem) to 5 (all)."""
    new_norm: bool = True
    """Whether the pyramid's convolutions have BatchNorm: yes in papers that train the backbone (MoCo, JCL, InfoMin),
    no in Ring, where it is frozen."""
    normed_heads: bool = False
    """Whether the heads of boxes and masks have BatchNorm, and the box head four convolutions and one layer instead of
    two layers: as in InfoMin's released code (arXiv 2005.10243), though not in the paper."""

    def __post_init__(self) -> None:
        check_frozen(self.frozen_stages)

    def build(
        self, encoder: FrozenEncoder, classes: int, output: Output, sizes: Sizes, proposals: int | None = None
    ) -> Detector:
        """The network for `classes` classes with the backbone's weights; the rest is drawn from torch's generator.
        `proposals` is the number of regions proposed per image in training; if omitted, that of `sizes`."""
        backbone, width = copy_of(encoder), encoder.width
        frozen_parts = freeze(backbone, self.frozen_stages)
        body = BackboneWithFPN(
            backbone,
            {f"layer{stage}": str(stage - 1) for stage in (1, 2, 3, 4)},
            [width // 8, width // 4, width // 2, width],
            _WIDTH,
            norm_layer=nn.BatchNorm2d if self.new_norm else None,
        )
        settings = partial(
            _KINDS[type(output)],
            body,
            classes + 1,
            rpn_anchor_generator=AnchorGenerator(tuple((side,) for side in sizes.anchors), ((0.5, 1.0, 2.0),) * 5),
            rpn_pre_nms_top_n_train=2 * sizes.proposals,
            rpn_post_nms_top_n_train=proposals or sizes.proposals,
            rpn_pre_nms_top_n_test=sizes.proposals,
            **transform_settings(encoder, sizes),
            **(_batch_norm_heads(output) if self.normed_heads else {}),
        )
        model = settings(num_keypoints=output.points) if isinstance(output, Keypoints) else settings()
        model_names = {name: f"backbone.body.{name}" for name in encoder.backbone.state_dict()}
        return check_detector(Detector(model, frozen_parts, model_names, sizes), encoder)


@dataclass(frozen=True)
class FourthStage:
    """The map of the backbone's fourth stage, with the fifth as the head on each region (C4)."""

    frozen_stages: int = 0
    """Frozen stages of the backbone: 0 (all learn), 1 (the stem) to 4. With 5 the BatchNorms of the fifth stage are
    frozen too while its other weights learn, as in Detectron2's frozen C4 detectors."""
    new_norm: bool = True
    """Whether one more BatchNorm follows the fifth stage (MoCo)."""

    def __post_init__(self) -> None:
        check_frozen(self.frozen_stages)

    def build(self, encoder: FrozenEncoder, classes: int, output: Output, sizes: Sizes) -> Detector:
        """The network for `classes` classes with the backbone's weights; the rest is drawn from torch's generator."""
        if isinstance(output, Keypoints):
            raise UserError("keypoints need a feature pyramid: none of the papers has them on C4")
        backbone, width = copy_of(encoder), encoder.width
        frozen_parts = freeze(backbone, min(self.frozen_stages, 4))
        if self.frozen_stages == 5:
            frozen_parts += tuple(part for part in backbone.layer4.modules() if isinstance(part, nn.BatchNorm2d))
            for part in frozen_parts:
                part.requires_grad_(False)
        stage = _FifthStage(backbone.layer4, width, self.new_norm)
        model = FasterRCNN(
            _Trunk(backbone, width // 2),
            rpn_anchor_generator=AnchorGenerator((sizes.anchors,), ((0.5, 1.0, 2.0),)),
            rpn_pre_nms_top_n_train=12 * sizes.proposals,
            rpn_post_nms_top_n_train=2 * sizes.proposals,
            rpn_pre_nms_top_n_test=6 * sizes.proposals,
            box_roi_pool=_region_align(),
            box_head=_RegionMean(stage),
            box_predictor=FastRCNNPredictor(width, classes + 1),
            **transform_settings(encoder, sizes),
        )
        if isinstance(output, Masks):
            model.roi_heads.mask_roi_pool = _region_align()
            model.roi_heads.mask_head = stage
            model.roi_heads.mask_predictor = MaskRCNNPredictor(width, _WIDTH, classes + 1)
        model_names = {
            name: f"roi_heads.box_head.stage.{name}" if name.startswith("layer4.") else f"backbone.body.{name}"
            for name in encoder.backbone.state_dict()
        }
        return check_detector(Detector(model, frozen_parts, model_names, sizes), encoder)


class _Trunk(nn.Module):
    """The backbone up to its fourth stage."""

    def __init__(self, backbone: ResNetFeatures, channels: int) -> None:
        super().__init__()
        self.body = IntermediateLayerGetter(backbone, {"layer3": "0"})
        self.out_channels = channels

    def forward(self, images: Float[Tensor, "b 3 h w"]) -> dict[str, Tensor]:
        return self.body(images)


class _FifthStage(nn.Module):
    """The last stage of the backbone on regions, with or without one more BatchNorm after it."""

    def __init__(self, layer4: nn.Module, width: int, new_norm: bool) -> None:
        super().__init__()
        self.layer4 = layer4
        self.norm = nn.BatchNorm2d(width) if new_norm else nn.Identity()

    def forward(self, regions: Float[Tensor, "r c 14 14"]) -> Float[Tensor, "r d _ _"]:
        return self.norm(self.layer4(regions))


class _RegionMean(nn.Module):
    """Mean over the positions of each region."""

    def __init__(self, stage: _FifthStage) -> None:
        super().__init__()
        self.stage = stage

    def forward(self, regions: Float[Tensor, "r c 14 14"]) -> Float[Tensor, "r d"]:
        return self.stage(regions).mean((2, 3))


def box_head_layers(batch_norm: bool) -> nn.Module:
    """The head of boxes on a pyramid, up to its 1,024 features of a region."""
    if batch_norm:
        return FastRCNNConvFCHead((_WIDTH, 7, 7), [_WIDTH] * 4, [1024], norm_layer=nn.BatchNorm2d)
    return TwoMLPHead(_WIDTH * 7**2, 1024)


def _batch_norm_heads(output: Output) -> dict[str, nn.Module]:
    heads = {"box_head": box_head_layers(batch_norm=True)}
    if isinstance(output, Masks):
        heads["mask_head"] = MaskRCNNHeads(_WIDTH, [_WIDTH] * 4, 1, norm_layer=nn.BatchNorm2d)
    return heads


def _region_align() -> MultiScaleRoIAlign:
    return MultiScaleRoIAlign(["0"], 14, 0)


_KINDS: dict[type, Callable[..., GeneralizedRCNN]] = {Boxes: FasterRCNN, Masks: MaskRCNN, Keypoints: KeypointRCNN}
