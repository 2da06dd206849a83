"""An exported file loads with strict=True into the library's own network by the lines it carries; outputs are equal."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from tiny import saved_run, tiny_run

from vantage.encoders import Convolutions, ResNet9, TinyAlexNet
from vantage.encoders.backbones.resnet import Backbone, ResNet, Timm
from vantage.encoders.encoder import Encoder
from vantage.encoders.heads import LinearHead
from vantage.encoders.normalization.choices import SplitBatchNorm
from vantage.encoders.roles import Shared
from vantage.errors import UserError
from vantage.frozen.encoder import FrozenEncoder, random_encoder
from vantage.frozen.export.backbone import Format, export, export_backbone

LOAD = "from safetensors.torch import load_file"
WITHOUT_NAME = ResNet(50, groups=2, width_per_group=16)
RESNETS = [
    ResNet(18, small=True, stem_stride=2),
    ResNet(18, in_channels=1),
    *(
        pytest.param(choice, marks=pytest.mark.slow)
        for choice in (ResNet(18), ResNet(18, small=True), ResNet(50), WITHOUT_NAME)
    ),
]
LARGE = [ResNet(34), ResNet(101), ResNet(50, groups=32, width_per_group=4), ResNet(50, width_per_group=128)]

LITTLE = [ResNet9(4), ResNet9(2, 2, features=24), Convolutions((8, 16))]
LITTLE += [TinyAlexNet(64, 3, 1 / 32), ResNet(18, width_multiplier=0.125)]


def encoder(backbone: Backbone) -> FrozenEncoder:
    run = replace(tiny_run(), encoders=Shared(Encoder(backbone, LinearHead(8), SplitBatchNorm(2))))
    frozen_encoder = random_encoder(run)
    generator = torch.Generator().manual_seed(1)
    for tensor in frozen_encoder.backbone.buffers():  # batch statistics of a trained network are not 0 and 1
        if tensor.is_floating_point():
            tensor.add_(0.1 * torch.rand(tensor.shape, generator=generator))
    return frozen_encoder


def model_from(how_to_load: str, folder: Path) -> torch.nn.Module:
    """Run the lines in a folder, as a user would."""
    working_folder, names = Path.cwd(), {}
    os.chdir(folder)
    try:
        exec(how_to_load, names)
    finally:
        os.chdir(working_folder)
    return names["model"]


def check(backbone: Backbone, to: Format, folder: Path, channels: int = 3) -> torch.nn.Module:
    frozen_encoder = encoder(backbone)
    result = export_backbone(frozen_encoder, to, folder / "backbone.safetensors")
    model = model_from(result.how, Path.cwd())
    images = torch.randn(2, channels, 64, 64)
    with torch.no_grad():
        assert torch.equal(model(images), frozen_encoder.backbone(images))
    with safe_open(result.file, framework="pt") as file:
        metadata = file.metadata()
    assert metadata["encoder"] == frozen_encoder.digest() and metadata["size"] == "32"
    state = model_from(metadata["how"], folder).state_dict()
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())
    return model


@pytest.mark.parametrize(
    ("to", "backbone", "imports"),
    [
        ("safetensors", Convolutions((8, 16)), [LOAD, "from vantage.encoders import Convolutions"]),
        ("timm", ResNet(18), ["import timm", LOAD]),
        ("torchvision", ResNet(18, small=True), ["import torch", "import torchvision", LOAD]),
    ],
)
def test_the_lines_begin_with_the_imports_that_they_need(
    to: Format, backbone: Backbone, imports: list[str], tmp_path: Path
) -> None:
    result = export_backbone(encoder(backbone), to, tmp_path / "backbone.safetensors")
    assert result.how.splitlines()[: len(imports) + 1] == [*imports, ""] and result.how.count("import ") == len(imports)
    last = result.how.splitlines()[-1]  # without it, one had to know that pixels are normalized
    assert last.startswith("# images: RGB, shorter side") and "pixels from 0 to 1 in RGB, normalized: mean (" in last


@pytest.mark.parametrize("to", ["torchvision", "timm", "safetensors"])
@pytest.mark.parametrize("backbone", RESNETS, ids=repr)
def test_resnets_load_elsewhere_with_equal_outputs(backbone: ResNet, to: Format, tmp_path: Path) -> None:
    model = check(backbone, to, tmp_path, backbone.in_channels)
    library = {"torchvision": "torchvision.", "timm": "timm.", "safetensors": "vantage."}[to]
    assert type(model).__module__.startswith(library)


@pytest.mark.slow
@pytest.mark.parametrize("to", ["torchvision", "timm"])
@pytest.mark.parametrize("backbone", LARGE, ids=repr)
def test_large_resnets_load_elsewhere_with_equal_outputs(backbone: ResNet, to: Format, tmp_path: Path) -> None:
    check(backbone, to, tmp_path)


@pytest.mark.parametrize("to", ["timm", "safetensors"])
def test_timm_networks_load_elsewhere_with_equal_outputs(to: Format, tmp_path: Path) -> None:
    check(Timm("mobilenetv3_small_050"), to, tmp_path)


@pytest.mark.parametrize("backbone", LITTLE, ids=repr)
def test_networks_for_little_compute_load_with_equal_outputs(backbone: Backbone, tmp_path: Path) -> None:
    check(backbone, "safetensors", tmp_path)


def test_a_run_is_exported(tmp_path: Path) -> None:
    run = replace(tiny_run(), encoders=Shared(Encoder(ResNet(18, small=True), LinearHead(8))))
    learner = saved_run(tmp_path, run).eval()
    result = export(tmp_path, "torchvision", tmp_path / "out" / "backbone.safetensors")
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        actual = model_from(result.how, tmp_path)(images)
        torch.testing.assert_close(actual, learner.networks.encoders[0].features(images), rtol=0, atol=0)


def test_unsuitable_networks_and_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="torchvision has no network for Timm"):
        export_backbone(encoder(Timm("mobilenetv3_small_050")), "torchvision", tmp_path / "a.safetensors")
    for to in ("torchvision", "timm"):
        with pytest.raises(UserError, match=f"{to} builds residual networks from 64 channels on, .* 0.125 times"):
            export_backbone(encoder(ResNet(18, width_multiplier=0.125)), to, tmp_path / "a.safetensors")
        with pytest.raises(UserError, match=f"{to} has no network for TinyAlexNet"):
            export_backbone(encoder(TinyAlexNet(64, 3, 1 / 32)), to, tmp_path / "a.safetensors")
    saved_run(tmp_path, tiny_run())
    for to in ("torchvision", "timm", "safetensors"):
        with pytest.raises(UserError, match="TinyBackbone.*: export it to onnx or torch"):
            export(tmp_path, to, tmp_path / "a.safetensors")
    frozen_encoder = encoder(ResNet(18))
    with pytest.raises(UserError, match="end the name a.pth with .safetensors"):
        export_backbone(frozen_encoder, "torchvision", tmp_path / "a.pth")
    (tmp_path / "a.safetensors").write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        export_backbone(frozen_encoder, "torchvision", tmp_path / "a.safetensors")
