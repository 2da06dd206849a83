"""`vantage resume`: what may change, and that the images are found again."""

import shlex
from pathlib import Path

import pytest
from stubbed_training import TrainingStub, run_of

from vantage.cli import main
from vantage.cli.reading.images import absolute
from vantage.composition.fields import replace_at
from vantage.recipes import moco_v2
from vantage.training.folder import settings

pytestmark = pytest.mark.usefixtures("own_cache")


def test_resume_may_change_hardware_monitoring_and_place(training: TrainingStub, tmp_path: Path) -> None:
    stored_run = moco_v2(32).fit(40)
    settings.write(stored_run, tmp_path)
    run = run_of(training, "resume", tmp_path, "--precision=32-true", "--set", "monitoring.log_every=3", "--data", "x")
    assert run == replace_at(stored_run, {"hardware.precision": "32-true", "monitoring.log_every": 3, "data.path": "x"})
    assert run_of(training, "resume", tmp_path, "--set", f"epochs={stored_run.epochs}") == stored_run


def test_a_run_finds_its_images_from_any_folder(
    training: TrainingStub,
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(images.parent)
    run = run_of(training, "pretrain", "moco_v2", "--data", images.name, "--out", tmp_path / "run")
    assert run.data.path == str(images.parent / images.name)
    assert absolute("torchvision:CIFAR10") == "torchvision:CIFAR10"
    assert absolute(f"{images.name}#a") == f"{images}#a"
    settings.write(replace_at(moco_v2(32).fit(40), {"data.path": "gone"}), tmp_path)
    assert main(["resume", str(tmp_path)]) == 2
    assert "the images of the run are not at gone: give their new location with --data PATH" in capsys.readouterr().err


def test_the_command_to_continue_repeats_what_this_one_changed(
    training: TrainingStub, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder's settings stay as they were, so without `--data` that command would not find the images."""
    settings.write(replace_at(moco_v2(32).fit(40), {"data.path": "gone"}), tmp_path)
    training.finished = False
    words = ["resume", str(tmp_path), "--data", str(images), "--set", "monitoring.log_every=3"]
    assert main(words) == 130
    assert f"; continue with: vantage {shlex.join(words)}\n" in capsys.readouterr().err
