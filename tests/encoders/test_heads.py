"""Heads: their layers, biases and shapes."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from vantage.encoders.heads import MLP, Head, JigsawHead, LinearHead, NormalizedMLP
from vantage.errors import UserError

HEADS = [LinearHead(width=16), MLP(hidden=24, width=16), NormalizedMLP(hidden=24, width=16)]
heads = pytest.mark.parametrize("head", HEADS, ids=lambda head: type(head).__name__)


def layers(module: nn.Module) -> list[str]:
    leaves = [leaf for leaf in module.modules() if not list(leaf.children())]
    return [f"{type(leaf).__name__}{' with bias' * (getattr(leaf, 'bias', None) is not None)}" for leaf in leaves]


@heads
def test_features_become_vectors_of_the_width(head: Head) -> None:
    module = head.build(40)
    vectors = module(torch.randn(6, 40))
    assert vectors.shape == (6, 16) and head.width == 16
    vectors.sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())


@heads
def test_heads_are_values(head: Head) -> None:
    assert isinstance(head, Head)
    assert eval(repr(head)) == head


def test_the_layers_are_those_of_the_papers() -> None:
    assert layers(LinearHead().build(8)) == ["Linear with bias"]
    assert layers(MLP().build(8)) == ["Linear with bias", "ReLU", "Linear with bias"]
    assert layers(NormalizedMLP().build(8)) == [
        "Linear",
        "BatchNorm1d with bias",
        "ReLU",
        "Linear",
        "BatchNorm1d with bias",
    ]


def test_mocos_head_has_its_published_shapes() -> None:
    shapes = [tuple(parameter.shape) for parameter in MLP().build(2048).parameters()]
    assert shapes == [(2048, 2048), (2048,), (128, 2048), (128,)]


def test_a_bias_before_the_batch_norm_would_change_nothing() -> None:
    head = NormalizedMLP(hidden=24, width=16).build(40).double()
    features = torch.randn(6, 40, dtype=torch.float64)
    without = head(features)
    for name in ("fc1", "fc2"):
        layer = head.get_submodule(name)
        assert isinstance(layer, nn.Linear)
        layer.bias = nn.Parameter(torch.randn(layer.out_features, dtype=torch.float64))
    torch.testing.assert_close(head(features), without, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LinearHead(width=0), "LinearHead: width"),
        (lambda: MLP(hidden=-1), "MLP: hidden"),
        (lambda: NormalizedMLP(width=0), "NormalizedMLP: width"),
    ],
)
def test_widths_below_one_are_refused(make: Callable[[], Head], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        make()


def test_a_jigsaw_head_is_a_head_a_patch_then_one_layer() -> None:
    head = JigsawHead(MLP(24, 5), width=16, patches=4)
    assert eval(repr(head)) == head
    module = head.build(40)
    features = torch.randn(6, 4, 40)
    each = torch.cat([module.patch(features[:, n]) for n in range(4)], 1)
    torch.testing.assert_close(module(features), module.joined(each))
    assert module(features).shape == (6, 16) and module.joined.weight.shape == (16, 4 * 5)
    module(features).sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())


def test_the_jigsaw_head_of_the_paper() -> None:
    shapes = [tuple(parameter.shape) for parameter in JigsawHead().build(2048).parameters()]
    assert shapes == [(128, 2048), (128,), (128, 1152), (128,)]


def test_another_number_of_patches_is_refused() -> None:
    with pytest.raises(UserError, match="built for 9 patches, but the view has 4"):
        JigsawHead().build(8)(torch.randn(2, 4, 8))
    for settings, sentence in (({"width": 0}, "JigsawHead: width"), ({"patches": 0}, "JigsawHead: patches")):
        with pytest.raises(UserError, match=sentence):
            JigsawHead(**settings)
