"""A network written as a graph, read by another runtime, gives the features of the encoder for any number of images."""

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import images, saved_run, tiny_run
from torch import nn

import vantage
from vantage.cli import main
from vantage.encoders import Convolutions, Encoder, LinearHead, PerView, ResNet, ResNet9, Shared
from vantage.encoders.backbones.resnet import Backbone
from vantage.errors import UserError
from vantage.frozen.encoder import load, random_encoder
from vantage.frozen.export import graph
from vantage.frozen.export.backbone import export_backbone
from vantage.training.run import Run
from vantage.views import Flow, RealNVP, Statistics, TwoSided, YDbDr, in_space
from vantage.views.colors.learned import write_learned


def run_of(backbone: Backbone) -> Run:
    return replace(tiny_run(), encoders=Shared(Encoder(backbone, LinearHead(8))))


def two_halves() -> Run:
    """CMC with a small network for each view: the network of the first sees L, that of the second a and b."""
    encoders = (Encoder(ResNet9(2, in_channels=1), LinearHead(8)), Encoder(Convolutions((4, 8), 2), LinearHead(8)))
    return replace(vantage.cmc(32), encoders=PerView(encoders))


NETWORKS = {"resnet18": run_of(ResNet(18, small=True)), "two halves": two_halves()}


def write_pixels(file: Path, source: vantage.Source) -> None:
    np.save(file, np.stack([source.image(number).permute(1, 2, 0).numpy() for number in range(len(source))]))


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
def test_every_kind_of_network_gives_the_same_features_in_onnx(network: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="the extra onnx is not installed")
    onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
    encoder = random_encoder(NETWORKS[network])
    result = export_backbone(encoder, "onnx", tmp_path / "network.onnx")
    assert result.check is not None and result.check.difference <= graph.TOLERANCE
    names: dict = {}
    exec(result.how, names)
    source = images(5, seed=3)
    pixels = np.stack([source.image(number).numpy() for number in range(5)])
    expected = vantage.embed(encoder, source).vector.numpy()
    for count in (1, 3, 5):
        (features,) = names["model"].run(None, {"images": pixels[:count]})
        np.testing.assert_allclose(features, expected[:count], rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    model = onnx.load(tmp_path / "network.onnx")
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert metadata["encoder"] == encoder.digest() and "network.onnx" in metadata["how"]
    (input_of_graph,), (output,) = model.graph.input, model.graph.output
    assert input_of_graph.name == "images" and input_of_graph.type.tensor_type.shape.dim[0].dim_param == "batch"
    assert output.name == "features" and output.type.tensor_type.shape.dim[1].dim_value == encoder.width


@pytest.mark.slow
@pytest.mark.parametrize("coupling", [TwoSided(4, 2), RealNVP(4, 2)], ids=["two-sided", "real-nvp"])
def test_learned_views_are_part_of_the_graph(coupling: TwoSided | RealNVP, tmp_path: Path) -> None:
    flow, statistics = Flow(coupling, 3), Statistics((0.1, 0.2, 0.3), (0.5, 0.6, 0.7))
    space = write_learned(tmp_path / "views.safetensors", flow, flow.build(), YDbDr(), statistics)
    run = two_halves()
    encoder = random_encoder(replace(run, views=in_space(run.views, space)))
    crops = graph.check_crops(encoder)
    program = graph.program_of(encoder, crops).module()
    assert graph.check(encoder, crops, program).difference <= graph.TOLERANCE


def test_another_feature_is_refused() -> None:
    encoder = random_encoder(run_of(Convolutions((4, 8))))
    crops = graph.check_crops(encoder)
    assert crops.origin == "random color gradients" and crops.pixels.shape == (8, 3, 32, 32)

    def same(pixels: torch.Tensor) -> torch.Tensor:
        return encoder.backbone(encoder.view.finish(pixels))

    def spoiled_features(pixels: torch.Tensor) -> torch.Tensor:
        features = same(pixels)
        features[0, 0] += 2e-4 * same(crops.pixels).abs().amax()
        return features

    assert graph.check(encoder, crops, same).difference < 1e-6
    with pytest.raises(UserError, match="differ by 0.0002 of the largest one on random color gradients"):
        graph.check(encoder, crops, spoiled_features)
    with pytest.raises(UserError, match="differ by nan"):
        graph.check(encoder, crops, lambda pixels: torch.full((len(pixels), 8), torch.nan))


def test_a_graph_is_checked_on_the_images_of_the_run_while_they_are_there(tmp_path: Path) -> None:
    encoder = random_encoder(run_of(Convolutions((4, 8))))
    source = images(20, seed=1)
    crops = graph.check_crops(encoder, source)
    assert crops.origin == "real images" and torch.equal(crops.pixels[-1], encoder.view.crop(source.image(19)))
    write_pixels(tmp_path / "images.npy", source)
    with_missing_images = replace(encoder, run=replace(encoder.run, data=vantage.Data(str(tmp_path / "images.npy"))))
    assert torch.equal(graph.check_crops(with_missing_images).pixels, crops.pixels)
    (tmp_path / "images.npy").unlink()
    assert graph.check_crops(with_missing_images).origin == "random color gradients"


class Branching(nn.Module):
    """A network whose path depends on the pixels, which no graph can follow."""

    width = 3

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.mean((2, 3)) if images.sum() > 0 else images.amax((2, 3))


def test_what_cannot_be_written_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = random_encoder(run_of(Convolutions((4, 8))))
    branching = replace(encoder, backbone=Branching().eval())
    with pytest.raises(UserError, match="cannot be written as one graph .*: export to safetensors"):
        export_backbone(branching, "torch", tmp_path / "a.pt2")
    with pytest.raises(UserError, match="an export to onnx is a .onnx file: end the name a.pt2 with .onnx"):
        export_backbone(encoder, "onnx", tmp_path / "a.pt2")
    monkeypatch.setattr("vantage.frozen.export.to_onnx.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"needs onnx, onnxruntime, onnxscript: pip install 'vantage-ssl\[onnx\]'"):
        export_backbone(encoder, "onnx", tmp_path / "a.onnx")
    monkeypatch.setattr("vantage.frozen.export.to_onnx.find_spec", lambda name: name)
    monkeypatch.setattr("vantage.frozen.export.to_onnx._MOST_BYTES", 100)
    with pytest.raises(UserError, match="an ONNX file holds 2 GB: export it to torch"):
        export_backbone(encoder, "onnx", tmp_path / "a.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_command_exports_a_run_with_two_networks_and_says_how_it_was_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved_run(tmp_path / "run", two_halves())
    write_pixels(tmp_path / "images.npy", images(8, seed=1))
    assert main(["export", str(tmp_path / "run"), "--to", "torch", "--data", str(tmp_path / "images.npy")]) == 0
    output = capsys.readouterr()
    assert "checked on 8 real images: features differ by " in output.err
    assert "run/backbone-torch.pt2; backbone-torch.pt2.md beside it describes it. To use it:\n" in output.err
    with zipfile.ZipFile(tmp_path / "run" / "backbone-torch.pt2") as file:
        (name,) = (name for name in file.namelist() if name.endswith("vantage.json"))
        metadata = json.loads(file.read(name))
    assert metadata["size"] == "32" and "torch.export.load('backbone-torch.pt2')" in metadata["how"]
    assert metadata["preparation"].startswith("shorter side resized to 32 pixels")
    names: dict = {}
    exec(output.out, names)
    source = images(3, seed=1)
    pixels = torch.stack([source.image(number) for number in range(3)])
    expected = vantage.embed(load(tmp_path / "run"), source).vector
    torch.testing.assert_close(names["model"](pixels), expected, rtol=1e-4, atol=1e-5)
