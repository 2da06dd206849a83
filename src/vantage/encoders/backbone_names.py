"""Backbones by their well-known names, and an encoder with its backbone replaced."""

import re
from dataclasses import replace
from functools import cache
from typing import Any

from vantage.composition.expression import read_value
from vantage.composition.fitting import everywhere
from vantage.composition.suggest import did_you_mean
from vantage.encoders.backbones.convolutions import Convolutions
from vantage.encoders.backbones.resnet import Backbone, ResNet, Timm, width_of
from vantage.encoders.backbones.resnet9 import ResNet9
from vantage.encoders.backbones.tiny_alexnet import TinyAlexNet
from vantage.encoders.encoder import Encoder
from vantage.encoders.weights import build_without_numbers
from vantage.errors import UserError

__all__ = ["BACKBONES", "RESIDUAL", "SMALL", "backbone_named", "with_backbone"]

SMALL = 96
"""Images up to this size, in pixels, get the backbones' small-image variants."""

RESIDUAL: dict[str, dict[str, Any]] = {
    **{f"resnet{depth}": {"depth": depth} for depth in (18, 34, 50, 101, 152)},
    "resnext50_32x4d": {"depth": 50, "groups": 32, "width_per_group": 4},
    "resnext101_32x8d": {"depth": 101, "groups": 32, "width_per_group": 8},
    "resnext101_64x4d": {"depth": 101, "groups": 64, "width_per_group": 4},
    "wide_resnet50_2": {"depth": 50, "width_per_group": 128},
    "wide_resnet101_2": {"depth": 101, "width_per_group": 128},
    **{f"resnet50x{times:g}": {"depth": 50, "width_multiplier": times} for times in (0.5, 2.0, 4.0)},
}
"""Settings of `ResNet` by the name of the network."""

BACKBONES = (*RESIDUAL, "resnet9", "tiny_alexnet", "convolutions")
"""Names of backbones, as in torchvision if it has the network. resnet50x2 has twice as many channels in every layer."""


def backbone_named(name: str, size: int) -> Backbone:
    """The backbone with this name, for images of `size` pixels.

    A name is one of `BACKBONES`, timm:NAME for any model of timm, MODULE:NAME for a part of your own, or a part with
    its settings, such as `ResNet(18, small=True)`. As in the recipes, residual networks get the stem that suits the
    size: up to 96 pixels the small one, with stride 2 above 48. Tiny AlexNet and timm's vision transformers are built
    for the size. Raises `UserError` for any other name.
    """
    plain = name.strip().lower().replace("-", "_")
    if plain in RESIDUAL:
        stem = {"small": True, "stem_stride": 1 if size <= 48 else 2} if size <= SMALL else {}
        return ResNet(**RESIDUAL[plain], **stem)
    if plain == "resnet9":
        return ResNet9(stem_stride=1 if size <= 48 else 2)
    if plain == "tiny_alexnet":
        return TinyAlexNet(image_size=size)
    if plain == "convolutions":
        return Convolutions()
    if plain.startswith("timm:"):
        model = name.strip()[5:]
        return Timm(model, image_size=size if _has_fixed_size(model) else None)
    if re.fullmatch(r"[\w-]*", plain):
        raise UserError(
            f"there is no backbone {name!r}{did_you_mean(plain, BACKBONES)} (backbones: {', '.join(BACKBONES)},"
            " timm:NAME, MODULE:NAME, or a part such as ResNet(18, small=True))"
        )
    return read_value(name, Backbone, "backbone")


def with_backbone(encoder: Encoder, backbone: Backbone) -> Encoder:
    """The encoder with another backbone, which takes images with as many channels as the old one.

    If a hidden layer of the head was as wide as the features (MoCo v2, SimCLR, InfoMin, InterCLR), it stays so.
    """
    old_backbone: Any = encoder.backbone
    settings = {name: getattr(old_backbone, name, None) for name in ("in_channels", "zero_init_residual")}
    settings = {name: value for name, value in settings.items() if value is not None and hasattr(backbone, name)}
    backbone = replace(backbone, **settings)  # pyright: ignore[reportArgumentType]
    old, new = _width(old_backbone), _width(backbone)

    def follows(part: Any) -> Any:
        return replace(part, hidden=new) if getattr(part, "hidden", None) == old else part

    return replace(
        encoder,
        backbone=backbone,
        head=everywhere(encoder.head, follows),
        jigsaw=everywhere(encoder.jigsaw, follows),
    )


def _width(backbone: Backbone) -> int:
    """Width of the features; cached if the backbone is hashable."""
    try:
        hash(backbone)
    except TypeError:  # a user's own part that holds a list
        return _measure_width(backbone)
    return _width_of(backbone)


def _measure_width(backbone: Backbone) -> int:
    """Width of the features, without allocating memory for parameters."""
    return width_of(build_without_numbers(backbone.build))


_width_of = cache(_measure_width)


def _has_fixed_size(model: str) -> bool:
    """Whether a model of timm is built for one size of images; false if that is not known."""
    try:
        from timm.models import get_pretrained_cfg
    except ImportError:
        return False
    settings = get_pretrained_cfg(model, allow_unregistered=True)
    return bool(settings is not None and settings.fixed_input_size)
