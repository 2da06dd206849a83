"""Tiny AlexNet: its layers one by one, its maps, and images of one size only."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vantage.encoders import Encoder, LinearHead, TinyAlexNet
from vantage.encoders.backbones.depths import maps
from vantage.encoders.backbones.resnet import Backbone, width_of
from vantage.errors import UserError


def test_its_layers_are_those_of_the_papers() -> None:
    """96-192-384-384-192 channels, 4096-4096-128: 192 maps of 7 by 7 of an image of 64 pixels."""
    with torch.device("meta"):
        network = Encoder(TinyAlexNet(), LinearHead(128)).build()
    weights = [tuple(p.shape) for name, p in network.named_parameters() if p.ndim > 1]
    convolutions = [(96, 3, 3, 3), (192, 96, 3, 3), (384, 192, 3, 3), (384, 384, 3, 3), (192, 384, 3, 3)]
    assert weights == [*convolutions, (4096, 192 * 7 * 7), (4096, 4096), (128, 4096)]
    images = torch.empty(2, 3, 64, 64, device="meta")
    assert [tuple(one.shape[1:]) for one in maps(network.backbone, images)] == [
        (96, 31, 31),
        (192, 15, 15),
        (384, 15, 15),
        (384, 15, 15),
        (192, 7, 7),
    ]


def test_it_is_what_its_formula_says() -> None:
    network = TinyAlexNet(15, 2, 1 / 32).build().eval()
    layers = [m for m in network.modules() if isinstance(m, nn.Conv2d | nn.Linear | nn.BatchNorm2d | nn.BatchNorm1d)]
    assert len(layers) == 14 and network.width == width_of(network) == 128
    for norm in layers[1::2]:
        assert isinstance(norm, nn.BatchNorm2d | nn.BatchNorm1d)
        norm.running_mean.uniform_(-1, 1)  # pyright: ignore[reportOptionalMemberAccess]
        norm.weight.data.uniform_(0.5, 2)

    def layer(number: int, x: Tensor) -> Tensor:
        weights: Any = layers[2 * number]
        norm: Any = layers[2 * number + 1]
        x = F.conv2d(x, weights.weight, padding=1) if number < 5 else x @ weights.weight.T
        one = (1, -1, 1, 1) if number < 5 else (1, -1)
        scale = norm.weight / (norm.running_var + norm.eps).sqrt()
        return ((x - norm.running_mean.view(one)) * scale.view(one) + norm.bias.view(one)).clamp(min=0)

    x = images = torch.randn(3, 2, 15, 15)
    for number in range(7):
        x = layer(number, x.flatten(1) if number == 5 else x)
        x = F.max_pool2d(x, 3, 2) if number in (0, 1, 4) else x
    torch.testing.assert_close(network(images), x)


def test_other_sizes_are_refused() -> None:
    network = TinyAlexNet(32, width_multiplier=1 / 32).build().eval()
    with pytest.raises(UserError, match="built for 32 pixels but got 64 x 64"):
        network(torch.randn(1, 3, 64, 64))
    for make, sentence in (
        (lambda: TinyAlexNet(14), "image_size is 14"),
        (lambda: TinyAlexNet(in_channels=0), "in_channels 0"),
        (lambda: TinyAlexNet(width_multiplier=0.3), "width_multiplier is 0.3"),
        (lambda: TinyAlexNet(width_multiplier=-1.0), "width_multiplier is -1"),
    ):
        with pytest.raises(UserError, match=sentence):
            make()
    assert isinstance(TinyAlexNet(), Backbone) and eval(repr(TinyAlexNet(32))) == TinyAlexNet(32)


@pytest.mark.slow
def test_torch_exports_it_for_any_batch() -> None:
    network, images = TinyAlexNet(16, width_multiplier=1 / 32).build().eval(), torch.randn(5, 3, 16, 16)
    program = torch.export.export(network, (images[:2],), dynamic_shapes=({0: torch.export.Dim("b", min=1)},))
    torch.testing.assert_close(program.module()(images), network(images))
