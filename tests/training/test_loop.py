"""The loop: what it writes, and that resuming changes nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from run_states import assert_equal, rows, state, wait_for_a_checkpoint
from small_runs import IMAGES, in_groups, new_process, resume_in_process, small_run, train_in_process
from torch import Tensor

from vantage.cli import main
from vantage.composition.codec import allowing
from vantage.errors import UserError
from vantage.progress import PlainProgress
from vantage.schedules import ByEpoch, Linear
from vantage.training.folder import settings
from vantage.training.loop import resume, train
from vantage.training.session import Session

KINDS_OF_STATE = ("moco_v2", "interclr", "ring_cmc_clusters", "infomin_linear")
"""A queue and a momentum encoder; a bank with clusters; two networks, a bank and an adaptive ring; learned colors."""

RECIPES = (
    *KINDS_OF_STATE,
    *("simclr", "moco_v2_multi_crop", "instance_discrimination_nce", "cmc", "pirl", "local_aggregation"),
    *("jcl", "cave_ir", "ring_moco", "interclr_moco", "everything"),
)
"""Every recipe that keeps another kind of state. The others differ from one of these in rules and estimators that keep
none; `test_learner.py` continues all recipes from their state."""

VARIANTS = (
    *("simclr_1000", "cmc_halves", "pirl_vissl", "infomin_no_jigsaw", "interclr_1000", "interclr_offline"),
    *("local_aggregation_warmed", "jcl_released", "cnce_moco", "cnce_la", "ring_ir_neighbors", "ring_moco_decoupled"),
)
"""Published variants that keep other state than their recipe; `benchmarks/resume.py` kills and resumes them all."""


@pytest.mark.parametrize("recipe", KINDS_OF_STATE)  # all of RECIPES are killed and resumed in the slow test below
def test_a_run_interrupted_in_mid_epoch_ends_as_if_it_never_was(
    recipe: str, images_path: str, tmp_path: Path, monkeypatch
):
    run = small_run(recipe, images_path, epochs=2)
    train(run, tmp_path / "whole")

    class Killed(Exception):
        pass

    def fail(self: Session, batch, step: int) -> Tensor:
        if step == 8:
            raise Killed
        return step_of(self, batch, step)

    step_of = Session.step
    monkeypatch.setattr(Session, "step", fail)
    with pytest.raises(Killed):
        train(run, tmp_path / "cut")
    monkeypatch.setattr(Session, "step", step_of)
    with allowing("tiny"):
        outcome = resume(tmp_path / "cut")
    assert outcome.finished and outcome.step == 2 * (IMAGES // 8)
    assert_equal(state(tmp_path / "whole"), state(tmp_path / "cut"))
    assert rows(tmp_path / "whole") == rows(tmp_path / "cut")


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [*RECIPES, *VARIANTS])
def test_a_process_killed_at_any_moment_resumes_bit_equal(recipe: str, images_path: str, tmp_path: Path):
    train(small_run(recipe, images_path), tmp_path / "whole")
    folder = tmp_path / "killed"
    process = new_process(train_in_process, recipe, images_path, folder)
    turn = [*RECIPES, *VARIANTS].index(recipe)  # another moment for each recipe
    wait_for_a_checkpoint(folder, process, 1 + turn % 11)
    time.sleep(0.004 * (turn % 7))
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL, "the run ended before it was killed"
    resuming_process = new_process(resume_in_process, folder)
    resuming_process.join()
    assert resuming_process.exitcode == 0
    assert_equal(state(tmp_path / "whole"), state(folder))
    assert rows(tmp_path / "whole") == rows(folder)


@pytest.mark.slow
@pytest.mark.usefixtures("short_looks")
def test_a_killed_command_resumes_bit_equal(images_path: str, tmp_path: Path):
    words = ["--data", images_path, "--size", "16", "--epochs", "6", "--batch-size", "8", "--precision", "32-true"]
    words += ["--set", "hardware.accelerator=cpu", "--set", "checkpoint_minutes=0", "--set", "monitoring.log_every=1"]
    words += ["--backbone", "convolutions"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command = [sys.executable, "-m", "vantage.cli", "pretrain", "moco_v2", *words, "--out", str(killed)]
    process = subprocess.Popen(command)
    wait_for_a_checkpoint(killed, process)
    process.kill()
    assert process.wait() == -signal.SIGKILL, "the run ended before it was killed"
    assert main(["resume", str(killed)]) == 0
    assert main(["pretrain", "moco_v2", *words, "--out", str(whole)]) == 0
    assert len(rows(whole)) == 6
    assert_equal(state(whole), state(killed))
    assert rows(whole) == rows(killed)


def test_the_folder_says_what_was_run(images_path: str, tmp_path: Path):
    run = small_run("moco_v2", images_path, epochs=1)
    outcome = train(run, tmp_path / "run")
    assert outcome.finished
    provenance = json.loads((tmp_path / "run" / "provenance.json").read_text())
    assert provenance[0]["data"]["images"] == IMAGES and torch.__version__.startswith(
        provenance[0]["versions"]["torch"]
    )
    (row,) = rows(tmp_path / "run")
    assert {
        "epoch",
        "step",
        "loss",
        "accuracy",
        "alignment",
        "uniformity",
        "rank",
        "deviation",
        "learning_rate",
    } <= row.keys()
    assert list((tmp_path / "run" / "events").iterdir())
    assert len(list((tmp_path / "run" / "checkpoint").iterdir())) == 2
    with pytest.raises(UserError, match="already holds a run"):
        train(run, tmp_path / "run")


def test_a_schedule_put_into_a_fitted_run_counts_the_epochs_of_its_images(
    images_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """It counted ImageNet's. What an earlier version saved so goes on so."""
    run = small_run("moco_v2", images_path, epochs=1)
    levels = ByEpoch(Linear(1.0, 0.5, 2), every=0.5)
    run = replace(run, branches=(replace(run.branches[0], weight=levels),))
    train(run, tmp_path / "run", PlainProgress())
    assert "an epoch has 6 steps here" in capsys.readouterr().err
    assert settings.read(tmp_path / "run").branches[0].weight == replace(levels, steps_per_epoch=6)
    assert resume(tmp_path / "run", run).finished
    settings.write(run, tmp_path / "earlier")
    for given in (None, run):
        assert resume(tmp_path / "earlier", given).finished
        assert settings.read(tmp_path / "earlier").branches[0].weight == levels


def test_the_losses_of_several_branches_are_recorded(images_path: str, tmp_path: Path):
    run = small_run("cmc_softmax", images_path, epochs=2)
    train(run, tmp_path / "run")
    weights = [branch.weight(0) for branch in run.branches]
    for row in rows(tmp_path / "run"):
        losses = [row[f"loss.{number}"] for number in range(len(weights))]
        assert row["loss"] == pytest.approx(sum(w * loss for w, loss in zip(weights, losses, strict=True)))


def test_accumulated_parts_give_the_gradient_of_their_mean(images_path: str, tmp_path: Path):
    """`test_accumulation.py` compares the gradients; here a run with accumulated parts writes the same state."""
    run = in_groups(small_run("instance_discrimination", images_path, epochs=1), 2)
    train(run, tmp_path / "whole")
    train(replace(run, accumulate=2), tmp_path / "parts")
    whole, parts = state(tmp_path / "whole"), state(tmp_path / "parts")
    assert whole.keys() == parts.keys()
    name = "learner.stores.0.vector"
    assert whole[name].shape == parts[name].shape
    assert not torch.equal(whole[name], parts[name])  # views of each part are drawn by themselves


def test_streamed_images_resume_too(tmp_path: Path, images_path: str, monkeypatch):
    run = small_run("moco_v2", images_path, epochs=1)
    run = replace(run, data=replace(run.data, resident_bytes=0, num_workers=0))
    train(run, tmp_path / "whole")
    step_of = Session.step

    def fail(self: Session, batch, step: int) -> Tensor:
        if step == 4:
            raise KeyboardInterrupt
        return step_of(self, batch, step)

    monkeypatch.setattr(Session, "step", fail)
    with pytest.raises(KeyboardInterrupt):
        train(run, tmp_path / "cut")
    monkeypatch.setattr(Session, "step", step_of)
    with allowing("tiny"):
        resume(tmp_path / "cut")
    assert_equal(state(tmp_path / "whole"), state(tmp_path / "cut"))


def test_knn_on_the_way_changes_nothing_but_the_log(images_path: str, tmp_path: Path):
    run = small_run("moco_v2", images_path, epochs=2)
    train(run, tmp_path / "plain")
    train(replace(run, monitoring=replace(run.monitoring, knn_every=1)), tmp_path / "probed")
    assert_equal(state(tmp_path / "plain"), state(tmp_path / "probed"))
    assert all(0 <= row["knn"] <= 100 for row in rows(tmp_path / "probed"))


def test_the_environment_is_as_before(images_path: str, tmp_path: Path):
    before = signal.getsignal(signal.SIGINT)
    train(small_run("simclr", images_path, epochs=1), tmp_path / "run")
    assert signal.getsignal(signal.SIGINT) is before and os.environ.get("VANTAGE_CACHE")


def test_resume_says_where_it_goes_on(images_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    train(small_run("moco_v2", images_path, epochs=1), tmp_path / "run")
    with allowing("tiny"):
        resume(tmp_path / "run", progress=PlainProgress())
        assert "all 6 steps are done already" in capsys.readouterr().err
        shutil.rmtree(tmp_path / "run" / "checkpoint")
        resume(tmp_path / "run", progress=PlainProgress())
        assert "there is no checkpoint yet: starting at the first step of 6" in capsys.readouterr().err


@pytest.mark.slow
def test_two_processes_train_from_the_command_line(images_path: str, tmp_path: Path):
    folder = tmp_path / "run"
    words = ["pretrain", "moco_v2", "--data", images_path, "--out", str(folder), "--size", "16", "--epochs", "1"]
    hardware = ["--batch-size", "16", "--set", "hardware.accelerator=cpu", "--devices", "2", "--precision", "32-true"]
    subprocess.run([sys.executable, "-m", "vantage.cli", *words, *hardware], check=True, timeout=3000)
    assert [row["step"] for row in rows(folder)] == [IMAGES // 16]
    image = state(folder)["learner.stores.0.image"]
    assert (image >= 0).sum() == min(IMAGES // 16 * 16, len(image))  # the keys of both processes were remembered
