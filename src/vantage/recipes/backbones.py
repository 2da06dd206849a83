"""Which ResNet recipes use at which image size."""

from dataclasses import replace
from typing import cast

from vantage.encoders import ResNet, backbone_named
from vantage.encoders.backbone_names import SMALL

__all__ = ["SMALL", "resnet"]


def resnet(size: int, zero_init_residual: bool = False) -> ResNet:
    """ResNet-50 as in the papers; ResNet-18 for small images, with the small stem, of stride 2 above 48 pixels."""
    backbone = cast(ResNet, backbone_named("resnet18" if size <= SMALL else "resnet50", size))
    return replace(backbone, zero_init_residual=zero_init_residual)
