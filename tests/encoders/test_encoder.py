"""Encoders: from images to unit vectors."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from vantage.encoders.backbones.resnet import ResNet, Timm
from vantage.encoders.encoder import Encoder, unit
from vantage.encoders.heads import MLP, JigsawHead, LinearHead, NormalizedMLP
from vantage.encoders.normalization.choices import BatchNorm, Normalization, SplitBatchNorm
from vantage.encoders.normalization.grouped import GroupedStatistics
from vantage.errors import UserError

SMALL = Encoder(ResNet(18, small=True), LinearHead(width=16))


def test_images_become_unit_vectors() -> None:
    network = SMALL.build()
    vectors = network(torch.randn(4, 3, 32, 32))
    assert vectors.shape == (4, 16) and network.width == 16
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(4))


def test_forward_is_backbone_then_head_then_unit_length() -> None:
    network = SMALL.build().double().eval()
    images = torch.randn(2, 3, 32, 32, dtype=torch.float64)
    features = network.features(images)
    assert features.shape == (2, 512)
    assert torch.equal(features, network.backbone(images))
    raw = network.head(features)
    torch.testing.assert_close(network(images), raw / raw.norm(dim=1, keepdim=True), rtol=1e-12, atol=0)


def test_the_state_is_that_of_backbone_and_head() -> None:
    network = Encoder(ResNet(18), MLP(hidden=32, width=16)).build()
    assert {name.split(".")[0] for name in network.state_dict()} == {"backbone", "head"}
    fresh = ResNet(18).build()
    fresh.load_state_dict(network.backbone.state_dict(), strict=True)


def test_the_normalization_reaches_backbone_and_head() -> None:
    network = Encoder(ResNet(18), NormalizedMLP(hidden=32, width=16), SplitBatchNorm(2)).build()
    assert sum(isinstance(layer, GroupedStatistics) for layer in network.backbone.modules()) == 20
    assert sum(isinstance(layer, GroupedStatistics) for layer in network.head.modules()) == 2
    assert not [layer for layer in network.modules() if type(layer) in (nn.BatchNorm1d, nn.BatchNorm2d)]


def test_timm_takes_a_head() -> None:
    pytest.importorskip("timm")
    network = Encoder(Timm("resnet10t"), LinearHead(width=8)).build()
    assert network(torch.randn(2, 3, 32, 32)).shape == (2, 8)


def test_vectors_are_float32_under_autocast_and_of_unit_length() -> None:
    network = SMALL.build()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        vectors = network(torch.randn(4, 3, 16, 16))
    assert vectors.dtype == torch.float32
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(4), rtol=1e-6, atol=0)
    vectors.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


@given(rows=st.integers(1, 6), width=st.integers(1, 9), scale=st.sampled_from([1e-15, 1.0, 1e15]))
def test_unit_is_torchs_normalize_at_every_scale(rows: int, width: int, scale: float) -> None:
    vector = torch.randn(rows, width, dtype=torch.float64) * scale
    torch.testing.assert_close(unit(vector), nn.functional.normalize(vector, eps=1e-100), rtol=1e-12, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_row_of_zeros_stays_and_takes_no_gradient(dtype: torch.dtype) -> None:
    vector = torch.tensor([[0.0, 0.0], [3.0, 4.0]], dtype=dtype, requires_grad=True)
    vectors = unit(vector)
    assert vectors.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    torch.testing.assert_close(vectors.double(), torch.tensor([[0.0, 0.0], [0.6, 0.8]]).double())
    (vectors * torch.tensor([1.0, 2.0])).sum().backward()
    assert vector.grad is not None and vector.grad.isfinite().all()
    assert (vector.grad[0] == 0).all() and (vector.grad[1] != 0).all()


def test_the_gradient_of_unit_is_right() -> None:
    vector = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(unit, (vector,))


def test_two_builds_from_one_seed_are_equal() -> None:
    states = []
    for _ in range(2):
        torch.manual_seed(5)
        states.append(SMALL.build().state_dict())
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())


def test_encoders_are_values() -> None:
    choice = Encoder(ResNet(50), MLP(), SplitBatchNorm(8))
    assert eval(repr(choice), {**globals(), "MLP": MLP}) == choice
    assert hash(choice) == hash(Encoder(ResNet(50), MLP(), SplitBatchNorm(8)))


class Nameless:
    """A backbone that forgot to say its width."""

    def build(self) -> nn.Module:
        return nn.Flatten()


def test_a_backbone_without_a_width_is_refused() -> None:
    with pytest.raises(UserError, match="Flatten has width None"):
        Encoder(Nameless(), LinearHead()).build()


def with_jigsaw(normalization: Normalization | None = None) -> Encoder:
    return Encoder(ResNet(18, small=True), LinearHead(16), normalization or BatchNorm(), JigsawHead(LinearHead(8), 16))


def test_patches_become_one_unit_vector_through_the_same_backbone() -> None:
    network = with_jigsaw().build().double().eval()
    patches = torch.randn(2, 9, 3, 9, 9, dtype=torch.float64)
    features = torch.stack([network.features(patches[:, n]) for n in range(9)], 1)
    assert network.jigsaw is not None
    raw = network.jigsaw(features)
    torch.testing.assert_close(network(patches), raw / raw.norm(dim=1, keepdim=True), rtol=1e-10, atol=1e-12)
    assert network(torch.randn(2, 3, 32, 32, dtype=torch.float64)).shape == (2, 16)


@pytest.mark.parametrize("normalization", [BatchNorm(), SplitBatchNorm(2)])
def test_permuting_patches_is_permuting_their_vectors(normalization: Normalization) -> None:
    """Also while BatchNorm looks at the batch, since its groups hold whole images."""
    network = with_jigsaw(normalization).build().double()
    patches = torch.randn(4, 9, 3, 9, 9, dtype=torch.float64)
    order = torch.rand(4, 9).argsort(1)
    each = torch.arange(4)[:, None]
    assert network.jigsaw is not None
    features = network.features(patches.flatten(0, 1)).unflatten(0, (4, 9))
    expected = unit(network.jigsaw(features[each, order]))
    torch.testing.assert_close(network(patches[each, order]), expected, rtol=1e-9, atol=1e-11)


def test_the_state_of_an_encoder_with_a_jigsaw_head() -> None:
    network = with_jigsaw(SplitBatchNorm(2)).build()
    assert {name.split(".")[0] for name in network.state_dict()} == {"backbone", "head", "jigsaw"}
    plain = Encoder(ResNet(18, small=True), LinearHead(16)).build()
    plain.backbone.load_state_dict(network.backbone.state_dict(), strict=True)


def test_the_normalization_reaches_the_jigsaw_head() -> None:
    choice = Encoder(ResNet(18), LinearHead(16), SplitBatchNorm(2), JigsawHead(NormalizedMLP(hidden=8, width=8), 16))
    jigsaw = choice.build().jigsaw
    assert jigsaw is not None and sum(isinstance(layer, GroupedStatistics) for layer in jigsaw.modules()) == 2


def test_patches_without_a_head_for_them_are_refused() -> None:
    with pytest.raises(UserError, match=r"give Encoder\.jigsaw one"):
        SMALL.build()(torch.randn(2, 9, 3, 9, 9))
    with pytest.raises(UserError, match="the same width"):
        Encoder(ResNet(18), LinearHead(16), jigsaw=JigsawHead())


COMPILED = """
import torch
from tiny import TinyBackbone
from vantage.encoders import BatchNorm, Encoder, JigsawHead, LinearHead
network = Encoder(TinyBackbone(), LinearHead(16), BatchNorm(), JigsawHead(LinearHead(8), 16)).build().eval()
seen = torch.randn(2, 3, 32, 32), torch.randn(2, 9, 3, 9, 9)
expected = [network(images) for images in seen]
network.compile(backend="aot_eager")
for images, plain in zip(seen, expected):
    torch.testing.assert_close(network(images), plain, rtol=1e-4, atol=1e-5)
"""


@pytest.mark.slow
def test_a_compiled_network_takes_images_and_patches() -> None:
    """In a process of its own: the shape checks of the tests cannot be compiled."""
    subprocess.run([sys.executable, "-c", COMPILED], check=True, cwd=Path(__file__).parents[1] / "support")
