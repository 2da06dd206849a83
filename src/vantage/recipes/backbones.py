"""Which ResNet recipes use at which image size."""

from dataclasses import replace
from typing import cast

from vantage.composition.field_types import expect
from vantage.encoders import ResNet, backbone_named
from vantage.encoders.backbone_names import SMALL

__all__ = ["is_small", "resnet"]


def resnet(size: int, zero_init_residual: bool = False) -> ResNet:
    """ResNet-50 as in the papers; ResNet-18 for small images, with the small stem, of stride 2 above 48 pixels."""
    backbone = cast(ResNet, backbone_named("resnet18" if is_small(size) else "resnet50", size))
    return replace(backbone, zero_init_residual=zero_init_residual)


def is_small(size: int) -> bool:
    """Whether a recipe takes its variant for small images. Raises `UserError` for a size that is no whole number."""
    expect(size, int, "the size of the images", "a whole number of pixels, such as 32")
    return size <= SMALL
