"""Backbones by name, and heads that follow them."""

from typing import Any

import pytest
import torch
import torchvision

from vantage.encoders import (
    BACKBONES,
    Convolutions,
    Encoder,
    ResNet,
    ResNet9,
    Timm,
    TinyAlexNet,
    backbone_named,
    with_backbone,
)
from vantage.encoders.heads import MLP, JigsawHead, LinearHead, NormalizedMLP
from vantage.errors import UserError
from vantage.recipes import cmc, infomin, moco_v2, simclr


@pytest.mark.parametrize("name", [name for name in BACKBONES if name in dir(torchvision.models)])
def test_a_name_is_torchvision_s_network_of_that_name(name: str) -> None:
    with torch.device("meta"):
        own = backbone_named(name, 224).build().state_dict()
        theirs = getattr(torchvision.models, name)().state_dict()
    assert {n: p.shape for n, p in own.items()} == {n: p.shape for n, p in theirs.items() if not n.startswith("fc.")}


@pytest.mark.parametrize(
    ("name", "size", "backbone"),
    [
        ("resnet18", 32, ResNet(18, small=True)),
        ("ResNet50", 64, ResNet(50, small=True, stem_stride=2)),
        ("resnet50", 97, ResNet(50)),
        ("convolutions", 32, Convolutions()),
        ("resnet9", 32, ResNet9()),
        ("resnet9", 64, ResNet9(stem_stride=2)),
        ("resnet50x0.5", 224, ResNet(50, width_multiplier=0.5)),
        ("ResNet50x4", 32, ResNet(50, small=True, width_multiplier=4.0)),
        ("tiny_alexnet", 64, TinyAlexNet()),
        ("tiny-alexnet", 96, TinyAlexNet(image_size=96)),
        ("timm:convnext_tiny", 64, Timm("convnext_tiny")),
        ("timm:vit_small_patch16_224", 64, Timm("vit_small_patch16_224", image_size=64)),
        ("Convolutions((4, 6))", 32, Convolutions((4, 6))),
    ],
)
def test_a_name_gives_its_backbone(name: str, size: int, backbone: Any) -> None:
    assert backbone_named(name, size) == backbone


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet19", "no backbone 'resnet19'; did you mean resnet9"),
        ("ResNeXt50", "did you mean resnext50_32x4d?"),
        ("resnext-50", "did you mean resnext50_32x4d?"),
        ("resnext101", "did you mean resnext101_32x8d or resnext101_64x4d?"),
        ("wide_resnet50", "did you mean wide_resnet50_2?"),
        ("resnext34", "did you mean resnet34?"),
        ("vit", "backbones: resnet18, resnet34"),
        ("InfoNCE()", "backbone: expected Backbone"),
        ("nowhere:Net", "nowhere"),
    ],
)
def test_other_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        backbone_named(name, 32)
    assert message in str(caught.value)


def test_the_hidden_layer_of_a_head_follows_the_features() -> None:
    small = backbone_named("resnet18", 224)
    moco: Any = moco_v2(224).encoders
    assert with_backbone(moco.encoder, small).head == MLP(512, 128)
    assert with_backbone(moco.encoder, backbone_named("resnet101", 224)).head == MLP(2048, 128)
    assert with_backbone(moco.encoder, Convolutions((8, 24))).head == MLP(24, 128)
    other: Any = simclr(224).encoders
    resized_encoder = with_backbone(other.encoder, small)
    assert resized_encoder.head == NormalizedMLP(512, 128) and resized_encoder.backbone == ResNet(
        18, zero_init_residual=True
    )
    for name, width in (("resnet50x4", 8192), ("resnet50x0.5", 1024), ("tiny_alexnet", 4096)):
        assert with_backbone(moco.encoder, backbone_named(name, 224)).head == MLP(width, 128)
    plain = Encoder(ResNet(50), MLP(64, 32), jigsaw=JigsawHead(LinearHead(32), 32))
    assert with_backbone(plain, small) == Encoder(ResNet(18), MLP(64, 32), jigsaw=JigsawHead(LinearHead(32), 32))
    momentum: Any = infomin(224).encoders
    with_small_backbone = with_backbone(momentum.encoder, small)
    assert with_small_backbone.head == MLP(512, 128) and with_small_backbone.jigsaw == JigsawHead(MLP(512, 128), 128)


def test_channels_stay() -> None:
    encoders: Any = cmc(64).encoders
    channels = [with_backbone(encoder, Convolutions((4,))).backbone.in_channels for encoder in encoders.encoders]
    assert channels == [1, 2]
