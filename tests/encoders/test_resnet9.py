"""The network of nine layers: its shapes, its formula layer by layer, and that it goes elsewhere."""

from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vantage.encoders import ResNet9
from vantage.encoders.backbones.depths import maps
from vantage.encoders.backbones.resnet import Backbone, width_of
from vantage.errors import UserError


@pytest.mark.parametrize(("stride", "pixels"), [(1, 32), (1, 8), (2, 64), (2, 16), (2, 50)])
@pytest.mark.parametrize("channels", [1, 3])
def test_features_are_eight_times_as_wide_as_the_stem(stride: Literal[1, 2], pixels: int, channels: int) -> None:
    network = ResNet9(4, stride, channels).build()
    images = torch.randn(2, channels, pixels, pixels)
    features = network(images)
    assert features.shape == (2, 32) and features.isfinite().all() and width_of(network) == 32
    first = (pixels + stride - 1) // stride
    stages = maps(network.eval(), images)
    assert [tuple(one.shape[1:]) for one in stages] == [(4 << n, first >> n, first >> n) for n in range(4)]
    torch.testing.assert_close(stages[-1].mean((2, 3)), network(images))


def test_it_is_what_its_formula_says() -> None:
    network = ResNet9(3).build().double().eval()
    layers = [m for m in network.modules() if isinstance(m, nn.Conv2d | nn.BatchNorm2d)]
    convolutions, norms = layers[::2], layers[1::2]
    assert len(convolutions) == 8 and all(isinstance(layer, nn.Conv2d) for layer in convolutions)
    for norm in norms:
        assert isinstance(norm, nn.BatchNorm2d)
        norm.running_mean.uniform_(-1, 1)  # pyright: ignore[reportOptionalMemberAccess]
        norm.weight.data.uniform_(0.5, 2)

    def layer(number: int, x: Tensor) -> Tensor:
        norm: Any = norms[number]
        x = F.conv2d(x, convolutions[number].weight, padding=1)  # pyright: ignore[reportArgumentType]
        scale = norm.weight / (norm.running_var + norm.eps).sqrt()
        return ((x - norm.running_mean[:, None, None]) * scale[:, None, None] + norm.bias[:, None, None]).clamp(min=0)

    images = torch.randn(2, 3, 16, 16, dtype=torch.float64)
    x = F.max_pool2d(layer(1, layer(0, images)), 2)
    x = x + layer(3, layer(2, x))
    x = F.max_pool2d(layer(4, x), 2)
    x = F.max_pool2d(layer(5, x), 2)
    x = x + layer(7, layer(6, x))
    torch.testing.assert_close(network(images), x.mean((2, 3)))
    losses = (features.square().sum() for features in (network(images), x.mean((2, 3))))
    ours, formula = (torch.autograd.grad(loss, [*network.parameters()]) for loss in losses)
    torch.testing.assert_close(ours, formula)


def test_wider_features_are_one_more_layer_of_the_last_map() -> None:
    """A 1 × 1 convolution with BatchNorm and ReLU, then the mean; everything before it is the network without it."""
    torch.manual_seed(0)
    plain = ResNet9(3).build().eval()
    torch.manual_seed(0)
    wider = ResNet9(3, features=40).build().eval()
    assert width_of(wider) == 40
    assert wider.load_state_dict(plain.state_dict(), strict=False).unexpected_keys == []
    (weight,) = (layer.weight for layer in wider.wider.modules() if isinstance(layer, nn.Conv2d))
    assert weight.shape == (40, 24, 1, 1)
    images = torch.randn(2, 3, 16, 16)
    last = maps(plain, images)[-1]
    one = torch.einsum("fc,bchw->bfhw", weight[:, :, 0, 0], last) / (1 + 1e-5) ** 0.5
    torch.testing.assert_close(wider(images), one.clamp(min=0).mean((2, 3)))
    assert [tuple(each.shape) for each in maps(wider, images)] == [tuple(each.shape) for each in maps(plain, images)]


def test_it_is_a_value() -> None:
    assert isinstance(ResNet9(), Backbone) and ResNet9(16, 2) == eval(repr(ResNet9(16, 2)))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ResNet9(0), "width is 0"),
        (lambda: ResNet9(in_channels=0), "in_channels 0"),
        (lambda: ResNet9(features=-1), "features is -1"),
        (lambda: ResNet9(stem_stride=3), "stem_stride"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_does_not_exist_is_refused(make: Any, sentence: str) -> None:
    with pytest.raises((UserError, TypeError), match=sentence):
        make()


def test_torch_exports_it_for_any_batch() -> None:
    network, images = ResNet9(4).build().eval(), torch.randn(5, 3, 16, 16)
    program = torch.export.export(network, (images[:2],), dynamic_shapes=({0: torch.export.Dim("b", min=1)},))
    torch.testing.assert_close(program.module()(images), network(images))
