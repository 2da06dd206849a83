"""Backbones: widths, stems, and state that loads back into torchvision and timm."""

import builtins
from typing import Any

import pytest
import torch
import torchvision
from torch import nn

from vantage.encoders.backbones.resnet import Backbone, ResNet, Timm, width_of
from vantage.errors import UserError

PAIRS = [
    (ResNet(18), "resnet18", 512),
    (ResNet(34), "resnet34", 512),
    (ResNet(50), "resnet50", 2048),
    (ResNet(101), "resnet101", 2048),
    (ResNet(152), "resnet152", 2048),
    (ResNet(50, groups=32, width_per_group=4), "resnext50_32x4d", 2048),
    (ResNet(101, groups=32, width_per_group=8), "resnext101_32x8d", 2048),
    (ResNet(50, width_per_group=128), "wide_resnet50_2", 2048),
    (ResNet(101, width_per_group=128), "wide_resnet101_2", 2048),
]


@pytest.mark.parametrize(
    ("choice", "name", "width"),
    [pytest.param(*pair, id=pair[1], marks=[pytest.mark.slow] if pair[0].depth > 50 else []) for pair in PAIRS],
)
def test_state_has_the_names_and_shapes_of_torchvision_less_the_classifier(
    choice: ResNet, name: str, width: int
) -> None:
    with torch.device("meta"):
        theirs: Any = getattr(torchvision.models, name)()
        ours = choice.build()
        assert ours(torch.empty(2, 3, 64, 64)).shape == (2, width)
    theirs.fc = nn.Identity()
    expected = {key: value.shape for key, value in theirs.state_dict().items()}
    assert {key: value.shape for key, value in ours.state_dict().items()} == expected
    assert width_of(ours) == width
    theirs.load_state_dict(ours.state_dict(), strict=True, assign=True)


def test_torchvision_gives_the_same_features_from_our_state() -> None:
    ours = ResNet(18).build().eval()
    theirs: Any = torchvision.models.resnet18().eval()
    theirs.fc = nn.Identity()
    theirs.load_state_dict(ours.state_dict(), strict=True)
    images = torch.randn(2, 3, 64, 64)
    assert torch.equal(ours(images), theirs(images))


def test_a_torchvision_model_adapted_in_two_lines_takes_the_small_stem() -> None:
    ours = ResNet(18, small=True).build().eval()
    theirs: Any = torchvision.models.resnet18().eval()
    theirs.conv1, theirs.maxpool, theirs.fc = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity(), nn.Identity()
    theirs.load_state_dict(ours.state_dict(), strict=True)
    images = torch.randn(2, 3, 32, 32)
    assert torch.equal(ours(images), theirs(images))


@pytest.mark.parametrize(
    ("choice", "pixels", "first", "last"),
    [
        (ResNet(18), 224, 56, 7),
        (ResNet(18), 64, 16, 2),
        (ResNet(18, small=True), 32, 32, 4),
        (ResNet(18, small=True, stem_stride=2), 64, 32, 4),
        (ResNet(50, small=True), 64, 64, 8),
    ],
)
def test_stems_leave_the_sizes_they_promise(choice: ResNet, pixels: int, first: int, last: int) -> None:
    sides: dict[str, int] = {}

    def note(name: str) -> Any:
        return lambda module, inputs, output: sides.__setitem__(name, output.shape[-1])

    with torch.device("meta"):
        network = choice.build()
        network.layer1.register_forward_hook(note("first"))
        network.layer4.register_forward_hook(note("last"))
        network(torch.empty(1, 3, pixels, pixels))
    assert sides == {"first": first, "last": last}


@pytest.mark.parametrize(("times", "millions"), [(0.5, 6), (1.0, 24), (2.0, 94), (4.0, 375)])
def test_widths_have_the_parameters_that_are_published(times: float, millions: int) -> None:
    """InfoMin, Table 6: ResNet-50 24 (23.5), ×2 94, ×4 375 million; two of half the width together 12."""
    with torch.device("meta"):
        network = ResNet(50, width_multiplier=times).build()
        narrow = ResNet(50, small=True, zero_init_residual=True, width_multiplier=times).build()
    assert round(sum(p.numel() for p in network.parameters()) / 1e6) == millions
    assert network.width == narrow.width == 2048 * times
    shapes = {name: value.shape for name, value in ResNet(50).build().state_dict().items()}
    for name, value in network.state_dict().items():
        expected = [int(n * times) if n != 3 or axis != 1 else n for axis, n in enumerate(shapes[name])]
        expected[2:] = shapes[name][2:]
        assert list(value.shape) == (expected if value.ndim else [])
    assert narrow(torch.empty(2, 3, 32, 32, device="meta")).shape == (2, 2048 * times)


def test_a_width_of_one_draws_the_weights_that_it_always_drew() -> None:
    for choice in (ResNet(18), ResNet(18, small=True), ResNet(18, in_channels=2)):
        torch.manual_seed(0)
        ours = choice.build().state_dict()
        torch.manual_seed(0)
        theirs: Any = torchvision.models.resnet18(num_classes=1).state_dict()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours if name != "conv1.weight")


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("small", [False, True])
def test_images_may_have_other_channels(channels: int, small: bool) -> None:
    network = ResNet(18, small=small, in_channels=channels).build()
    features = network(torch.randn(2, channels, 32, 32))
    assert features.shape == (2, 512) and features.isfinite().all()


def test_the_new_stem_is_initialized_as_torchvision_initializes_its_own() -> None:
    stem = ResNet(18, small=True).build().conv1.weight
    assert stem.shape == (64, 3, 3, 3)
    assert stem.std().item() == pytest.approx((2 / (64 * 9)) ** 0.5, rel=0.1)


@pytest.mark.parametrize(("depth", "last"), [(18, "bn2"), (50, "bn3")])
def test_zero_init_makes_every_block_start_as_its_shortcut(depth: Any, last: str) -> None:
    for zero in (True, False):
        network = ResNet(depth, zero_init_residual=zero).build()
        scales = [p for name, p in network.named_parameters() if name.endswith(f"{last}.weight") and "layer" in name]
        assert len(scales) == sum({18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}[depth])
        assert all(bool((scale == 0).all()) is zero for scale in scales)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ResNet(18, groups=32), "groups 32"),
        (lambda: ResNet(34, width_per_group=128), "width_per_group 128"),
        (lambda: ResNet(18, stem_stride=2), "small=True"),
        (lambda: ResNet(50, in_channels=0), "in_channels is 0"),
        (lambda: ResNet(50, groups=0), "groups is 0"),
        (lambda: ResNet(50, width_multiplier=0.0), "width_multiplier is 0.0"),
        (lambda: ResNet(50, width_multiplier=0.33), "width_multiplier is 0.33"),
        (lambda: ResNet(50, width_multiplier=float("nan")), "width_multiplier is nan"),
        (lambda: ResNet(50, groups=32, width_per_group=4, width_multiplier=0.125), "width_multiplier is 0.125"),
    ],
)
def test_combinations_that_do_not_exist_are_refused(make: Any, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        make()


def test_choices_are_values() -> None:
    for choice in (ResNet(50, small=True), Timm("resnet18", in_channels=1)):
        assert isinstance(choice, Backbone)
        assert eval(repr(choice)) == choice


def test_a_module_without_a_width_is_refused() -> None:
    with pytest.raises(UserError, match=r"Linear has width None.*\.width"):
        width_of(nn.Linear(3, 4))


TIMM = [
    (Timm("resnet10t"), 512, 32),
    (Timm("resnet10t", in_channels=2), 512, 32),
    (Timm("vit_tiny_patch16_224", image_size=32), 192, 32),
    (Timm("test_convnext"), 64, 64),
    (Timm("mobilenetv3_small_050"), 1024, 32),
]


@pytest.mark.parametrize(("choice", "width", "pixels"), TIMM, ids=[choice.name for choice, _, _ in TIMM])
def test_timm_reports_the_width_of_its_features(choice: Timm, width: int, pixels: int) -> None:
    pytest.importorskip("timm")
    network = choice.build().eval()
    assert network(torch.randn(2, choice.in_channels, pixels, pixels)).shape == (2, width)
    assert width_of(network) == width


def test_timm_loads_our_state() -> None:
    timm = pytest.importorskip("timm")
    ours = Timm("resnet10t").build().eval()
    theirs = timm.create_model("resnet10t", num_classes=0).eval()
    theirs.load_state_dict(ours.state_dict(), strict=True)
    images = torch.randn(2, 3, 32, 32)
    assert torch.equal(ours(images), theirs(images))


def test_a_misspelled_timm_name_is_answered_with_near_ones() -> None:
    pytest.importorskip("timm")
    with pytest.raises(UserError, match="'resnt50'; did you mean .*resnet50"):
        Timm("resnt50").build()
    with pytest.raises(UserError, match="list_models"):
        Timm("qqqqqqqqqqqq").build()


@pytest.mark.parametrize("name", ["hf-hub:timm/resnet18", "local-dir:/tmp", "timm/resnet18"])
def test_timm_names_that_would_fetch_or_open_something_are_refused(name: str) -> None:
    pytest.importorskip("timm")
    with pytest.raises(UserError, match="no model called"):
        Timm(name).build()


def test_a_size_that_a_timm_model_does_not_take_is_refused() -> None:
    pytest.importorskip("timm")
    with pytest.raises(UserError, match="resnet10t.*image_size"):
        Timm("resnet10t", image_size=32).build()


def test_without_timm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".")[0] == "timm":
            raise ImportError(name)
        return honest(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"pip install 'vantage-ssl\[timm\]'"):
        Timm("resnet18").build()
