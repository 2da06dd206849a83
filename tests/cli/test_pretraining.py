"""`vantage pretrain`: words become the run they describe, and what was changed from the recipe is reported."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stubbed_training import TrainingStub, make_images, run_of
from tiny import saved_run, tiny_run

from vantage.cli import main
from vantage.estimators import JCL, InfoNCE
from vantage.negatives import OtherImages, Ring
from vantage.recipes import moco_v2, simclr
from vantage.training.folder.checkpoint import newest
from vantage.training.optimizers import LARS, SGD, AdamW
from vantage.training.run import Data, Hardware
from vantage.training.start.warm_start import WarmStart

pytestmark = pytest.mark.usefixtures("own_cache")


def test_pretrain_fits_the_recipe_and_lets_the_user_win(training: TrainingStub, images: Path, tmp_path: Path) -> None:
    words = ["pretrain", "moco_v2", "--data", images, "--out", tmp_path / "run"]
    fitted_run = moco_v2(32).fit(40)
    assert run_of(training, *words) == replace(fitted_run, data=Data(str(images)))
    words[-1] = tmp_path / "other"
    run = run_of(
        training, *words, "--set", "branches.0.estimator.temperature=0.17", "--set=branches.0.memory.length=77"
    )
    assert run.branches[0].estimator == InfoNCE(0.17)
    assert run.branches[0].memory.length == 77
    assert run.batch_size == fitted_run.batch_size


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--epochs 5", {"epochs": 5}),
        ("--batch-size 4", {"batch_size": 4, "learning_rate.base": pytest.approx(0.03 * 4 / 256)}),
        ("--batch_size 4 --learning-rate 0.5", {"batch_size": 4, "learning_rate.base": 0.5}),
        ("--devices 2 --precision 32-true", {"hardware": Hardware(devices=2, precision="32-true")}),
        ("--devices 2 --nodes 4", {"hardware": Hardware(devices=2, nodes=4)}),
        ("--set accumulate=8", {"accumulate": 8, "batch_size": 8}),
        ("--set views.views.0.crop.scale=0.5,0.75", {"views.views.0.crop.scale": (0.5, 0.75)}),
        ("--set branches.0.keys=1 --seed 7", {"branches.0.keys": (1,), "seed": 7}),
        ("--set hardware.compile=True", {"hardware.compile": True}),
        ("--on-bad-image stop --num-workers 1", {"data.on_bad_image": "stop", "data.num_workers": 1}),
        ("--set optimizer.weight-decay=0.25", {"optimizer.weight_decay": 0.25}),
        ("--set negatives=(OtherImages(),Ring())", {"branches.0.negatives": (OtherImages(), Ring())}),
        ("--set branches.0.estimator=JCL() --set temperature=.3", {"branches.0.estimator": JCL(0.3)}),
        ("--size 64", {"views.views.0.crop.size": 64, "encoders.encoder.backbone.small": True}),
        ("--size 224", {"views.views.0.crop.size": 224, "encoders.encoder.backbone.depth": 50}),
        ("--backbone resnet50", {"encoders.encoder.backbone.depth": 50, "encoders.encoder.head.hidden": 2048}),
        (
            "--backbone resnet18 --size 224",
            {"encoders.encoder.backbone.depth": 18, "encoders.encoder.head.hidden": 512},
        ),
        (
            "--backbone Convolutions((4,6))",
            {"encoders.encoder.backbone.widths": (4, 6), "encoders.encoder.head.hidden": 6},
        ),
        ("--optimizer sgd", {"optimizer": SGD(weight_decay=5e-4)}),
        ("--optimizer adamw --batch-size 16", {"optimizer": AdamW(), "learning_rate.base": pytest.approx(1e-3 / 16)}),
        ("--optimizer lars --learning-rate 1", {"optimizer": LARS(), "learning_rate.base": 1.0}),
    ],
)
def test_any_field_is_set_by_its_path(
    words: str,
    expected: dict[str, Any],
    training: TrainingStub,
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MASTER_ADDR", "node0")  # where several machines would meet
    run = run_of(training, "pretrain", "moco_v2", "--data", images, "--out", tmp_path / "run", *words.split())
    for path, value in expected.items():
        current: Any = run
        for name in path.split("."):
            current = current[int(name)] if isinstance(current, tuple) else getattr(current, name)
        assert current == value


def test_a_run_starts_from_another(
    training: TrainingStub, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved_run(tmp_path / "first", tiny_run())
    words = ["pretrain", "ring_moco", "--data", images, "--out", tmp_path / "run", "--init", tmp_path / "first"]
    assert main([*map(str, words)]) == 2 and training.run is None
    assert "Choose the backbone that it was trained with: --backbone 'tiny.TinyBackbone()'" in capsys.readouterr().err
    words += ["--import", "tiny", "--set", "backbone=tiny:TinyBackbone()"]
    assert run_of(training, *words).recipe == "ring_moco" and isinstance(training.init, WarmStart)  # read once
    assert training.init.path == newest(tmp_path / "first")
    assert main([*map(str, words[:2]), "--data", "nowhere", "--init", str(tmp_path / "nothing")]) == 2
    assert "nothing holds no run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "offered"),
    [("ring_ir", True), ("ring_ir --set mean=0.5,0.5,0.5", False), ("ring_ir --size 224", False), ("moco_v2", False)],
)
def test_statistics_of_small_images_are_offered(
    words: str, offered: bool, training: TrainingStub, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_of(training, "pretrain", *words.split(), "--data", images, "--out", tmp_path / "run").epochs
    output = " ".join(capsys.readouterr().err.split())
    assert (f"vantage views statistics ring_ir --data {images}" in output) == offered


@pytest.mark.parametrize(("side", "size"), [(20, 32), (48, 32), (49, 64), (97, 224)])
def test_the_size_of_views_follows_the_images(side: int, size: int, training: TrainingStub, tmp_path: Path) -> None:
    folder = make_images(tmp_path / "images", side, 8)
    run = run_of(
        training, "pretrain", "simclr", "--data", folder, "--out", tmp_path / "run", "--set", "branches.0.query=1"
    )
    assert run.views == simclr(size).views
    assert run.branches[0].query == 1


def test_what_was_fitted_and_what_was_given_is_reported(
    training: TrainingStub, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pretrain", "moco_v1", "--data", images, "--out", tmp_path / "run", "--epochs", "6"]
    run_of(training, *words)
    output = capsys.readouterr()
    assert output.out == ""
    assert "branches.0.memory.length: recipe 4,096, this run 20 (fitted to the images)" in output.err
    assert "epochs: recipe 200, this run 6 (given)" in output.err
    assert re.search(r"learning_rate\.milestones\.0: recipe 120, this run .* \(follows what was given\)", output.err)
    assert f"images: 40 from {images}" in output.err
    assert "the short side of the images is 40 px" in output.err
    words[5] = tmp_path / "quiet"
    run_of(training, *words, "--quiet")
    assert capsys.readouterr() == ("", "")


def test_a_part_in_place_of_another_is_shown_with_all_its_fields(
    training: TrainingStub, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_of(
        training,
        "pretrain",
        "moco_v1",
        "--data",
        images,
        "--out",
        tmp_path / "run",
        "--set",
        "branches.0.estimator=JCL()",
    )
    line = next(line for line in capsys.readouterr().err.splitlines() if "branches.0.estimator: " in line)
    assert "recipe InfoNCE(temperature=0.07, margin=0.0), " in line
    assert "this run JCL(temperature=0.2, strength=Constant(value=4.0)) (given)" in line


def test_other_processes_of_a_run_say_nothing(
    training: TrainingStub,
    images: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    run_of(training, "pretrain", "moco_v2", "--data", images, "--out", tmp_path / "run")
    assert capsys.readouterr().err == ""


def test_a_stopped_run_is_no_success(
    training: TrainingStub, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    training.finished = False
    assert main(["pretrain", "moco_v2", "--data", str(images), "--out", str(tmp_path / "run")]) == 130
    assert f"continue with: vantage resume {tmp_path / 'run'}" in capsys.readouterr().err
