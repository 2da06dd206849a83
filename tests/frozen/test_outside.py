"""Weights from elsewhere: converted without running anything, matched by name, and judged wherever a run is."""

import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tiny import images, saved_run, tiny_run
from torch import Tensor

from vantage.cli import main
from vantage.encoders import ResNet, Timm
from vantage.encoders.weights import backbone_tensors, fit_weights, read_weights
from vantage.errors import UserError
from vantage.frozen.convert import convert
from vantage.frozen.encoder import load
from vantage.frozen.outside import home_of, outside_weights
from vantage.views import IMAGENET

SMALL = "mobilenetv3_small_050"
"""The smallest network of timm with BatchNorm and a classifier."""


@pytest.fixture(scope="module")
def resnet() -> dict[str, Tensor]:
    """A ResNet-18 of torchvision, as its files have it: with its classifier."""
    import torchvision

    torch.manual_seed(3)
    return torchvision.models.resnet18(weights=None).state_dict()


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory, resnet: dict[str, Tensor]) -> Path:
    """Files as other libraries write them."""
    folder = tmp_path_factory.mktemp("weights")
    save_file(resnet, folder / "resnet18.safetensors")
    import timm

    save_file(timm.create_model(SMALL, pretrained=False).state_dict(), folder / "timm.safetensors")
    pixels = torch.stack([source.image(number) for source in [images(12, 0)] for number in range(12)])
    np.savez(folder / "images.npz", images=pixels.permute(0, 2, 3, 1).numpy(), labels=np.arange(12) % 3)
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))


def moco(resnet: dict[str, Tensor]) -> dict[str, Any]:
    """What MoCo's release saves: both networks with their MLP heads, the queue, and the optimizer."""
    body = {name: value for name, value in resnet.items() if not name.startswith("fc.")}
    head = {f"fc.{layer}.{kind}": torch.zeros(4) for layer in (0, 2) for kind in ("weight", "bias")}
    state = {f"module.encoder_q.{name}": value for name, value in {**body, **head}.items()}
    state |= {f"module.encoder_k.{name}": value + 1 for name, value in {**body, **head}.items()}
    state |= {"module.queue": torch.zeros(8, 16), "module.queue_ptr": torch.zeros(1, dtype=torch.int64)}
    return {"epoch": 800, "arch": "resnet18", "state_dict": state, "optimizer": {"state": {0: {"step": 1}}}}


class Bomb:
    """Runs a command when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.mark}",)


def test_mocos_query_network_is_converted_and_fits(resnet: dict[str, Tensor], tmp_path: Path, capsys):
    torch.save(moco(resnet), tmp_path / "moco.pth.tar")
    out = tmp_path / "moco.safetensors"
    assert main(["convert", str(tmp_path / "moco.pth.tar"), str(out)]) == 0
    output = capsys.readouterr()
    assert output.out == f"{out}\n" and "without 'module.encoder_q.' before their names" in output.err
    network = load_file(out)
    assert network.keys() == {*(n for n in resnet if not n.startswith("fc.")), *(n for n in network if n[:3] == "fc.")}
    backbone = ResNet(18).build()
    assert set(fit_weights(backbone, out)) == {"fc.0.weight", "fc.0.bias", "fc.2.weight", "fc.2.bias"}
    assert all(torch.equal(value, resnet[name]) for name, value in backbone.state_dict().items())
    with safe_open(out, framework="pt") as file:
        assert file.metadata()["converted from"] == "moco.pth.tar"


def test_names_of_checkpoints_fit_as_they_are(resnet: dict[str, Tensor], tmp_path: Path):
    backbone = ResNet(18).build()
    query = moco(resnet)["state_dict"]
    assert torch.equal(backbone_tensors(backbone, query, tmp_path).state["conv1.weight"], resnet["conv1.weight"])
    for prefix in ("module.", "encoder_q.", "backbone.", "model.", ""):
        state, missing_names = backbone_tensors(
            backbone, {f"{prefix}{name}": value for name, value in resnet.items()}, tmp_path
        )
        assert state.keys() == backbone.state_dict().keys()
        assert missing_names == (f"{prefix}fc.weight", f"{prefix}fc.bias")
    without_counters = {name: value for name, value in resnet.items() if "num_batches_tracked" not in name}
    assert backbone_tensors(backbone, without_counters, tmp_path).state.keys() == backbone.state_dict().keys()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda mark: Bomb(mark), "refused: .*None of it was run"),
        (lambda mark: {"state_dict": {"conv1.weight": torch.zeros(1)}, "args": Bomb(mark)}, "refused: .*GLOBAL"),
        (lambda mark: torch.nn.Linear(2, 2), r"refused: .*torch.nn.modules.linear.Linear\). None of it was run"),
        (lambda mark: [torch.zeros(1)], "holds no dict of tensors, but list"),
        (lambda mark: {"epoch": 3, "student": {"a": torch.zeros(1)}}, r"name their key with --key \(epoch, stud"),
        (lambda mark: {}, r"\(nothing\)"),
    ],
)
def test_whatever_is_more_than_tensors_is_refused_and_nothing_runs(content: Any, message: str, tmp_path: Path):
    mark, file = tmp_path / "mark", tmp_path / "hostile.pth"
    for write in (lambda: torch.save(content(mark), file), lambda: file.write_bytes(pickle.dumps(content(mark)))):
        write()
        with pytest.raises(UserError, match=message if zipfile.is_zipfile(file) else "refused"):
            convert(file, tmp_path / "out.safetensors")
        with pytest.raises(UserError, match="is not a safetensors file: convert it first, with `vantage convert"):
            read_weights(file)
        assert not mark.exists() and not (tmp_path / "out.safetensors").exists()


def test_a_key_may_lead_through_several_dicts(tmp_path: Path) -> None:
    file, out = tmp_path / "deep.pth", tmp_path / "out.safetensors"
    torch.save({"teacher": {"net": {"a": torch.zeros(2)}, "step": 3}, "with.dot": {"b": torch.zeros(2)}}, file)
    for key, words in (
        ("teacher", r"no tensors under 'teacher': name their key with --key teacher.NAME \(net, step\)"),
        ("teacher.nat", "no state dict under 'teacher.nat'"),
        ("teacher.step.x", "no state dict under"),
    ):
        with pytest.raises(UserError, match=words):
            convert(file, out, key)
    assert convert(file, out, "teacher.net").names == ("a",)
    assert convert(file, tmp_path / "other.safetensors", "with.dot").names == ("b",)


def test_weights_that_cannot_be_read_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.pth").write_bytes(b"PK")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UserError, match=r"a\.pth cannot be read: Permission denied"):
        convert(tmp_path / "a.pth", tmp_path / "out.safetensors")


def test_files_that_are_no_weights_are_refused_in_words(tmp_path: Path, resnet: dict[str, Tensor]):
    out = tmp_path / "out.safetensors"
    for name, content in (("empty.pth", b""), ("text.pth", b"no pickle"), ("rows.parquet", b"PAR1" + bytes(90))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match="is refused: torch.save did not write it"):
            convert(tmp_path / name, out)
    (tmp_path / "broken.pth").write_bytes(b"PK\x03\x04" + bytes(90))
    with pytest.raises(UserError, match=r"is refused: it is damaged, .* would run code\. None of it was run"):
        convert(tmp_path / "broken.pth", out)
    (tmp_path / "weights.safetensors").write_bytes(bytes(100))
    with pytest.raises(UserError, match="is not a safetensors file, or is damaged"):
        read_weights(tmp_path / "weights.safetensors")
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(UserError, match="there is no file"):
            convert(path, out)
        with pytest.raises(UserError, match="there is no file"):
            read_weights(path)
    torch.save({"student": {"a": torch.zeros(2)}, "epoch": 1}, tmp_path / "keyed.pth")
    assert convert(tmp_path / "keyed.pth", out, key="student").names == ("a",)
    with pytest.raises(UserError, match="no state dict under 'teacher'; it has student, epoch"):
        convert(tmp_path / "keyed.pth", tmp_path / "other.safetensors", key="teacher")
    with pytest.raises(UserError, match="exists already"):
        convert(tmp_path / "keyed.pth", out)
    with pytest.raises(UserError, match="end the name with .safetensors"):
        convert(tmp_path / "keyed.pth", tmp_path / "out.pth")
    shared_tensor = torch.zeros(3)
    torch.save({"a": shared_tensor, "b": shared_tensor}, tmp_path / "tied.pth")
    assert len(load_file(convert(tmp_path / "tied.pth", tmp_path / "tied.safetensors").file)) == 2


def test_half_of_a_deeper_network_is_no_backbone(resnet: dict[str, Tensor], tmp_path: Path):
    with torch.device("meta"):
        deeper, narrower = ResNet(34).build().state_dict(), ResNet(50).build().state_dict()
    with pytest.raises(UserError, match=r"not those of this backbone: \d+ tensors in it are not needed, .*layer1.2"):
        backbone_tensors(ResNet(18).build(), deeper, tmp_path)
    with pytest.raises(UserError, match="are missing from it, such as layer"):
        backbone_tensors(ResNet(34).build(), resnet, tmp_path)
    with pytest.raises(UserError, match="are of another shape"):
        backbone_tensors(ResNet(18).build(), narrower, tmp_path)
    with pytest.raises(
        UserError,
        match=r"backbone: 1 is of another shape, such as conv1.weight: \(64, 3, 7, 7\) and not \(64, 3, 3, 3\)",
    ):
        backbone_tensors(ResNet(18, small=True).build(), resnet, tmp_path)


def test_a_name_with_a_file_is_a_frozen_encoder(weights: Path, resnet: dict[str, Tensor]):
    frozen = load(Path(f"torchvision:resnet18={weights}/resnet18.safetensors"))
    assert (frozen.name, frozen.width) == ("torchvision:resnet18 (resnet18.safetensors)", 512)
    view: Any = frozen.view
    assert (view.size, view.resize, view.statistics) == (224, 256, IMAGENET)
    assert all(torch.equal(value, resnet[name]) for name, value in frozen.backbone.state_dict().items())
    assert not frozen.backbone.training and not any(p.requires_grad for p in frozen.backbone.parameters())
    frozen = load(Path(f"timm:{SMALL}={weights}/timm.safetensors"))
    assert frozen.choice == Timm(SMALL) and frozen.width == 1024
    assert frozen.view.size == 224 and frozen.view.resize == 256  # pyright: ignore[reportAttributeAccessIssue]
    assert outside_weights("runs/first") is None and home_of(Path("runs/first")) == Path("runs/first")
    assert home_of(Path("timm:a=b/c.safetensors")) == Path("b/c")


def test_timms_own_statistics_and_size_are_the_view(tmp_path: Path):
    import timm

    name = "vit_tiny_patch16_384"
    save_file(timm.create_model(name, pretrained=False, num_classes=7).state_dict(), tmp_path / "vit.safetensors")
    view: Any = load(Path(f"timm:{name}={tmp_path}/vit.safetensors")).view
    assert (view.size, view.resize) == (384, 384) and view.statistics.mean == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("torchvision:resnet18", "names no weights: write torchvision:resnet18=FILE"),
        ("timm:=x", "names no weights"),
        ("torchvision:resnet18=nowhere.safetensors", "there is no file nowhere.safetensors"),
        ("torchvision:resnet19=x", "there is no backbone 'resnet19'; did you mean resnet"),
        ("torchvision:resnext50=x", r"there is no backbone 'resnext50'; did you mean resnext50_32x4d\?$"),
        ("torchvision:resnet50x3=x", r"there is no backbone 'resnet50x3'; did you mean resnet50\?$"),
        (
            "torchvision:convolution=x",
            r"there is no backbone 'convolution' \(those of torchvision: .*wide_resnet101_2\)$",
        ),
        ("torchvision:convolutions=x", "is not a residual network"),
        ("torchvision:mobilenet_v2=x", "torchvision:mobilenet_v2 is not a residual network"),
        ("timm:resnet10000=x", "timm has no model called 'resnet10000'"),
    ],
)
def test_names_that_are_none_are_refused(word: str, message: str):
    with pytest.raises(UserError, match=message):
        load(Path(word))


@pytest.mark.slow
def test_verbs_that_take_a_run_take_weights(weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    word, data = f"timm:{SMALL}={tmp_path}/weights.safetensors", str(weights / "images.npz")
    (tmp_path / "weights.safetensors").write_bytes((weights / "timm.safetensors").read_bytes())
    saved_run(tmp_path / "run", tiny_run())

    def run(*words: str) -> str:
        assert main(["--import", "tiny", *words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    assert "random encoder" in run("evaluate", "knn", word, "--data", data, "--k", "3", "--baselines")
    (result,) = (tmp_path / "weights" / "evaluations").glob("knn-*.json")
    record = json.loads(result.read_text())
    assert record["checkpoint"] == "weights.safetensors" and "size=224" in record["view"]
    assert list(record["outcomes"]) == [f"timm:{SMALL} (weights.safetensors)", "raw pixels", "random encoder"]
    table = run("compare", str(tmp_path / "run"), word, "--data", data, "--protocols", "knn", "--set", "knn.k=3")
    assert f"timm:{SMALL} (weights.safetensors)" in table and "moco_v2" in table
    run("embed", word, "--data", data, "--out", str(tmp_path / "features.npy"))
    assert np.load(tmp_path / "features.npy").shape == (12, 1024)
    run("export", word, "--to", "timm")
    tensors = load_file(tmp_path / "weights" / "backbone-timm.safetensors")
    assert torch.equal(tensors["conv_stem.weight"], load_file(weights / "timm.safetensors")["conv_stem.weight"])
    similarity = run("analyse", "similarity", word, "--data", data, "--images", "2", "--augmentations", "2")
    assert f"timm:{SMALL} (weights.safetensors)" in similarity
    assert (tmp_path / "weights" / "analyses" / "similarity.json").is_file()
    assert f"timm:{SMALL} (weights.safetensors)" in run("analyse", "false-negatives", word, "--data", data)
    outliers = tmp_path / "outliers.csv"
    assert str(outliers) in run("find", "outliers", word, "--data", data, "--out", str(outliers))
    assert len(outliers.read_text().splitlines()) == 1 + 12
    page = str(tmp_path / "page.html")
    assert page in run("report", word, str(tmp_path / "run"), "--data", data, "--out", page)
    assert main(["--import", "tiny", "analyse", "band", word, "--data", data]) == 2
    assert "needs the views, heads and memory of a run" in capsys.readouterr().err
