"""A detector: torchvision's network with a trained ResNet in it, and its frozen parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torchvision.models.detection.generalized_rcnn import GeneralizedRCNN

from vantage.encoders.backbones.resnet import ResNet
from vantage.encoders.backbones.resnet_features import ResNetFeatures
from vantage.errors import UserError
from vantage.evaluate.protocols.detection.sizes import COCO_SIZES, Sizes
from vantage.frozen.encoder import FrozenEncoder

__all__ = ["Detector", "check_backbone", "check_frozen", "check_detector", "copy_of", "freeze", "transform_settings"]

_STAGES = ("conv1", "layer1", "layer2", "layer3", "layer4")


@dataclass(frozen=True)
class Detector:
    """A network that detects instances, and its frozen parts."""

    model: GeneralizedRCNN
    """torchvision's network: images and targets to losses in training, images to detections in testing."""

    frozen_parts: tuple[nn.Module, ...]
    """Parts that neither learn nor update batch statistics."""

    model_names: Mapping[str, str]
    """Names of the backbone's parameters and buffers in the model, by their names in the checkpoint."""

    sizes: Sizes
    """Sides that images are resized to."""

    def train_mode(self) -> None:
        """Training mode, except for the frozen parts."""
        self.model.train()
        self._resize_to(self.sizes.or_sides(COCO_SIZES.short_sides).short_sides)
        for part in self.frozen_parts:
            part.eval()

    def eval_mode(self) -> None:
        """Evaluation mode."""
        self.model.eval()
        self._resize_to((self.sizes.test_side,))

    def _resize_to(self, sides: tuple[int, ...]) -> None:
        vars(self.model.transform)["min_size"] = sides

    def check_copied(self, backbone: nn.Module) -> None:
        """Raises `RuntimeError` unless every parameter and buffer of the backbone is in the model, bit for bit."""
        state = self.model.state_dict()
        for name, value in backbone.state_dict().items():
            if not torch.equal(state[self.model_names[name]].cpu(), value.cpu()):
                raise RuntimeError(f"{name} of the backbone is not in the detector")


def transform_settings(encoder: FrozenEncoder, sizes: Sizes) -> dict[str, Any]:
    """How images are resized and normalized, and how many regions are used. In training, torchvision keeps 2,000 of a
    pyramid's proposals and Detectron2 1,000; on C4 Detectron2 keeps 2,000."""
    statistics = encoder.view.statistics
    return {
        "min_size": sizes.test_side,
        "max_size": sizes.long_side,
        "image_mean": list(statistics.mean),
        "image_std": list(statistics.std),
        "rpn_post_nms_top_n_test": sizes.proposals,
        "box_batch_size_per_image": sizes.regions,
    }


def check_backbone(encoder: FrozenEncoder) -> ResNet:
    """The ResNet that a detector is built on; raises `UserError` for other networks, and for several together."""
    if encoder.choice is None:
        raise UserError("a detector needs one network, but this run trained several: choose one (--network 0)")
    if not isinstance(encoder.choice, ResNet):
        raise UserError(f"detectors are built on ResNets, but this run trained {encoder.choice!r}: choose another run")
    if encoder.choice.in_channels != 3 or len(encoder.view.channels) != 3:
        raise UserError(
            f"detectors see the three channels of images, but this network sees {len(encoder.view.channels)}: choose"
            " another run or network"
        )
    return encoder.choice


def copy_of(encoder: FrozenEncoder) -> ResNetFeatures:
    """A trainable backbone with the weights of the encoder. Raises `UserError` if that is not a ResNet."""
    backbone = check_backbone(encoder).build()
    assert isinstance(backbone, ResNetFeatures)
    backbone.load_state_dict(encoder.backbone.state_dict(), strict=True)
    return backbone


def freeze(backbone: ResNetFeatures, stages: int) -> tuple[nn.Module, ...]:
    """Freeze the parts of the first stages, and return them."""
    parts = tuple(backbone.get_submodule(name) for name in _STAGES[:stages])
    parts += (backbone.bn1,) if stages else ()
    for part in parts:
        part.requires_grad_(False)
    return parts


def check_frozen(stages: int) -> None:
    """Raises `UserError` for a number of stages that a ResNet does not have."""
    if not 0 <= stages <= 5:
        raise UserError(
            f"detection: frozen_stages is {stages}; give 0 (all learn), 1 (the stem is frozen) to 5 (all are frozen)"
        )


def check_detector(detector: Detector, encoder: FrozenEncoder) -> Detector:
    """The detector, after a check that it holds all of the trained weights."""
    detector.check_copied(encoder.backbone)
    return detector
