"""Maps at the depths of a backbone: sizes of the literature, and the pooled features as their deepest."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from vantage.encoders import ResNet, Timm
from vantage.encoders.depths import AtDepth, maps
from vantage.errors import UserError


def test_the_maps_of_a_resnet_have_the_sizes_of_the_literature() -> None:
    with torch.no_grad():
        found = maps(ResNet(50).build().eval(), torch.randn(1, 3, 224, 224))
    assert [tuple(one.shape[1:]) for one in found] == [
        (64, 112, 112), (256, 56, 56), (512, 28, 28), (1024, 14, 14), (2048, 7, 7)
    ]  # fmt: skip


@pytest.mark.parametrize("small", [False, True])
def test_the_deepest_map_averaged_is_the_feature(small: bool) -> None:
    backbone, images = ResNet(18, small=small).build().eval(), torch.randn(2, 3, 32, 32)
    seen = AtDepth(backbone, -1, nn.AdaptiveAvgPool2d(1), images[:1]).eval()
    assert seen.width == 512
    assert_close(seen(images), backbone(images))


def test_a_wrapped_backbone_keeps_its_mode_and_its_statistics() -> None:
    backbone = ResNet(18, small=True).build().train()
    before = {name: tensor.clone() for name, tensor in backbone.state_dict().items()}
    AtDepth(backbone, 2, nn.AvgPool2d(2), torch.randn(4, 3, 32, 32))
    assert backbone.training
    assert_close(backbone.state_dict(), before, rtol=0, atol=0)


def test_timm_shows_its_own_maps() -> None:
    pytest.importorskip("timm")
    backbone = Timm("resnet10t").build().eval()
    assert AtDepth(backbone, -1, nn.AdaptiveAvgPool2d(2), torch.randn(1, 3, 64, 64)).width == 4 * 512


def test_a_backbone_without_maps_and_a_depth_too_many_are_refused() -> None:
    with pytest.raises(UserError, match="Flatten shows no maps"):
        maps(nn.Flatten(), torch.randn(1, 3, 8, 8))
    with pytest.raises(UserError, match="depth 5 was asked for, but the backbone has 5 maps"):
        AtDepth(ResNet(18).build(), 5, nn.Identity(), torch.randn(1, 3, 32, 32))
