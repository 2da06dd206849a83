"""Maps at the depths of a backbone: sizes of the literature, and the pooled features as their deepest."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from vantage.encoders import ResNet, Timm
from vantage.encoders.backbones.depths import GRIDS, AtDepth, AtDepths, grid_pool, maps
from vantage.errors import UserError


def test_the_maps_of_a_resnet_have_the_sizes_of_the_literature() -> None:
    with torch.no_grad():
        layers = maps(ResNet(50).build().eval(), torch.randn(1, 3, 224, 224))
    assert [tuple(one.shape[1:]) for one in layers] == [
        (64, 112, 112), (256, 56, 56), (512, 28, 28), (1024, 14, 14), (2048, 7, 7)
    ]  # fmt: skip


@pytest.mark.parametrize("small", [False, True])
def test_the_deepest_map_averaged_is_the_feature(small: bool) -> None:
    backbone, images = ResNet(18, small=small).build().eval(), torch.randn(2, 3, 32, 32)
    network = AtDepth(backbone, -1, nn.AdaptiveAvgPool2d(1), images[:1]).eval()
    assert network.width == 512
    assert_close(network(images), backbone(images))


def test_a_wrapped_backbone_keeps_its_mode_and_its_statistics() -> None:
    backbone = ResNet(18, small=True).build().train()
    before = {name: tensor.clone() for name, tensor in backbone.state_dict().items()}
    AtDepth(backbone, 2, nn.AvgPool2d(2), torch.randn(4, 3, 32, 32))
    assert backbone.training
    assert_close(backbone.state_dict(), before, rtol=0, atol=0)


def test_maps_of_timm_are_its_intermediates() -> None:
    pytest.importorskip("timm")
    backbone = Timm("resnet10t").build().eval()
    assert AtDepth(backbone, -1, nn.AdaptiveAvgPool2d(2), torch.randn(1, 3, 64, 64)).width == 4 * 512


def test_a_backbone_without_maps_and_a_depth_too_many_are_refused() -> None:
    with pytest.raises(UserError, match="Flatten has no maps"):
        maps(nn.Flatten(), torch.randn(1, 3, 8, 8))
    with pytest.raises(UserError, match="depth 5 was asked for, but the backbone has 5 maps"):
        AtDepth(ResNet(18).build(), 5, nn.Identity(), torch.randn(1, 3, 32, 32))


def test_the_depths_of_resnet_50_have_the_widths_of_the_released_code() -> None:
    network = AtDepths(ResNet(50).build().eval(), torch.randn(1, 3, 224, 224))
    assert [depth.width for depth in network.depths] == [9216, 9216, 8192, 9216, 8192]
    assert network.width == 44_032 and all(isinstance(pool, nn.AvgPool2d) for pool in network.pools)


def test_depths_are_the_maps_pooled_one_after_the_other() -> None:
    backbone, images = ResNet(18, small=True).build().eval(), torch.randn(2, 3, 32, 32)
    network = AtDepths(backbone, images[:1])
    # sides 32, 32, 16, 8 and 4, in grids of 12, 6, 4, 3 and 2
    assert [depth.width for depth in network.depths] == [64 * 144, 64 * 36, 128 * 16, 256 * 9, 512 * 4]
    assert [depth.channels for depth in network.depths] == [64, 64, 128, 256, 512]
    parts = network(images).split([depth.width for depth in network.depths], 1)
    for grid, part, one in zip(GRIDS, parts, maps(backbone, images), strict=True):
        assert_close(part, nn.functional.adaptive_avg_pool2d(one, grid).flatten(1))


def test_the_released_pooling_is_an_average_over_windows_with_zeros_outside() -> None:
    one = torch.randn(1, 1, 112, 112, dtype=torch.float64)
    pooled = grid_pool(12, 112, 112)(one)
    borders = nn.functional.pad(one, (4, 4, 4, 4))[0, 0]
    for row in range(12):
        for column in range(12):
            window = borders[10 * row : 10 * row + 10, 10 * column : 10 * column + 10]
            assert float(pooled[0, 0, row, column]) == pytest.approx(float(window.mean()))


def test_maps_smaller_than_the_grid_stay_as_they_are() -> None:
    one = torch.randn(2, 5, 1, 3)
    assert_close(grid_pool(2, 1, 3)(one), nn.functional.adaptive_avg_pool2d(one, (1, 2)))
    one = torch.randn(2, 5, 2, 2)
    assert_close(grid_pool(6, 2, 2)(one), one)


def test_the_deepest_map_of_a_custom_backbone_gets_the_coarsest_grid() -> None:
    class Two(nn.Module):
        def maps(self, images: Tensor) -> list[Tensor]:
            return [images, images[:, :1, ::2, ::2]]

    network = AtDepths(Two(), torch.randn(1, 3, 16, 16))
    assert [depth.width for depth in network.depths] == [3 * 9, 4]
