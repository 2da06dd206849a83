"""The loop: what it writes, how it stops, and that resuming changes nothing."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import (
    IMAGES,
    SIZE,
    in_groups,
    new_process,
    resume_in_process,
    small_run,
    train_in_process,
    write_images,
)
from torch import Tensor
from torch.utils.data import get_worker_info

from vantage.cli import main
from vantage.composition.codec import allowing
from vantage.data import loading
from vantage.errors import UserError
from vantage.progress import PlainProgress
from vantage.training.folder import checkpoint, same_run
from vantage.training.folder.same_run import check_same_everywhere
from vantage.training.loop import resume, train
from vantage.training.run import Data, Hardware, Monitoring, Run
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


@pytest.fixture
def images_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Images, and a cache of the test's own."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    return write_images(tmp_path / "images.npz")


def state(folder: Path) -> dict[str, Tensor]:
    """Every tensor of the newest checkpoint."""
    newest = checkpoint.latest(folder)
    assert newest is not None
    return checkpoint.load(newest)[0]


def rows(folder: Path) -> list[dict[str, float]]:
    """The metrics without the clock."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in lines]


def assert_equal(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


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


def wait_for_a_checkpoint(folder: Path, process: BaseProcess | subprocess.Popen[bytes], step: int = 1) -> None:
    """Until the run has one of this step or a later one, or ended without."""
    alive = process.is_alive if isinstance(process, BaseProcess) else lambda: process.poll() is None
    while alive() and max((int(path.name[5:14]) for path in folder.glob("checkpoint/step-*")), default=0) < step:
        time.sleep(0.002)


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
def test_a_killed_command_resumes_bit_equal(images_path: str, tmp_path: Path):
    words = ["--data", images_path, "--size", "16", "--epochs", "6", "--batch-size", "8", "--precision", "32-true"]
    words += ["--set", "hardware.accelerator=cpu", "--set", "checkpoint_minutes=0", "--set", "monitoring.log_every=1"]
    words += ["--backbone", "convolutions"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command = [sys.executable, "-m", "vantage.cli", "pretrain", "moco_v2", *words, "--out", str(killed)]
    process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
    wait_for_a_checkpoint(killed, process)
    process.kill()
    assert process.wait() == -signal.SIGKILL, "the run ended before it was killed"
    assert main(["resume", str(killed)]) == 0
    assert main(["pretrain", "moco_v2", *words, "--out", str(whole)]) == 0
    assert len(rows(whole)) == 6
    assert_equal(state(whole), state(killed))
    assert rows(whole) == rows(killed)


def test_a_killed_worker_is_reported_in_a_line(
    images_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """As where memory runs out; what is saved until then goes on."""
    words = ["--data", images_path, "--size", "16", "--epochs", "3", "--batch-size", "8", "--backbone", "convolutions"]
    words += ["--num-workers", "1", "--set", "data.resident_bytes=0", "--set", "hardware.accelerator=cpu", "--quiet"]
    decode = loading._CropDataset.__getitem__

    def decode_or_die(self: Any, key: tuple[int, int]) -> Any:
        if key[0] == 1 and get_worker_info() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        return decode(self, key)

    with monkeypatch.context() as patch:
        patch.setattr(loading._CropDataset, "__getitem__", decode_or_die)
        assert main(["pretrain", "moco_v2", *words, "--out", str(tmp_path / "run")]) == 2
    message = capsys.readouterr().err
    assert message.startswith("vantage: a process that decodes images was killed") and message.count("\n") == 1, message
    assert main(["resume", str(tmp_path / "run"), "--quiet"]) == 0
    assert len(rows(tmp_path / "run")) == 3


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_save_and_end_cleanly(number: signal.Signals, images_path: str, tmp_path: Path):
    folder = tmp_path / "run"
    process = new_process(train_in_process, "moco_v2", images_path, folder)
    wait_for_a_checkpoint(folder, process)
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join(timeout=60)
    assert process.exitcode == 0
    with allowing("tiny"):
        assert resume(folder).finished


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_all_processes_saves_and_ends_cleanly(number: signal.Signals, images_path: str, tmp_path: Path):
    """Also those that decode images: Ctrl-C, `timeout` and others reach the whole group."""
    words = ["--data", images_path, "--size", "16", "--epochs", "900", "--batch-size", "8", "--precision", "32-true"]
    words += ["--set", "hardware.accelerator=cpu", "--set", "data.resident_bytes=0", "--backbone", "convolutions"]
    command = [sys.executable, "-m", "vantage.cli", "pretrain", "moco_v2", *words, "--out", str(tmp_path / "run")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        while b"epoch 2" not in process.stderr.readline():
            assert process.poll() is None
        os.killpg(process.pid, number)
        message = process.stderr.read().decode()
    assert process.returncode == 130 and "continue with: vantage resume" in message, message
    assert checkpoint.latest(tmp_path / "run")


def test_a_signal_is_seen_after_the_step_it_came_in(images_path: str, tmp_path: Path, monkeypatch):
    run = replace(small_run("moco_v2", images_path, epochs=2), monitoring=Monitoring(log_every=1000))

    def interrupt(self: Session, batch, step: int) -> Tensor:
        if step == 2:
            signal.raise_signal(signal.SIGINT)
        return step_of(self, batch, step)

    step_of = Session.step
    monkeypatch.setattr(Session, "step", interrupt)
    outcome = train(run, tmp_path / "run")
    assert (outcome.step, outcome.finished) == (3, False)
    assert checkpoint.latest(tmp_path / "run") is not None


def test_what_is_refused_at_the_start_leaves_no_run_behind(images_path: str, tmp_path: Path):
    with pytest.raises(UserError, match=f"there are {IMAGES} images"):
        train(replace(small_run("moco_v2", images_path), batch_size=1000), tmp_path / "run")
    assert not (tmp_path / "run").exists()


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


def test_a_resumed_run_keeps_its_settings_and_its_images(images_path: str, tmp_path: Path):
    run = small_run("moco_v2", images_path, epochs=1)
    train(run, tmp_path / "run")
    with allowing("tiny"):
        with pytest.raises(UserError, match="epochs is 1 in the run, 5 was asked"):
            resume(tmp_path / "run", replace(run, epochs=5))
        Path(images_path).unlink()
        with pytest.raises(UserError):
            resume(tmp_path / "run")


def test_other_images_are_refused(images_path: str, tmp_path: Path):
    run = small_run("moco_v2", images_path, epochs=1)
    train(run, tmp_path / "run")
    import numpy as np

    other = str(tmp_path / "other.npz")
    np.savez(other, images=np.zeros((IMAGES, 16, 16, 3), np.uint8))
    with allowing("tiny"), pytest.raises(UserError, match="give the same images again"):
        resume(tmp_path / "run", replace(run, data=Data(other)))


def test_a_loss_that_is_not_finite_stops_by_name(images_path: str, tmp_path: Path, monkeypatch):
    def diverges(self: Session, batch, step: int) -> Tensor:
        loss = step_of(self, batch, step)
        return loss * (math.inf if step == 7 else 1.0)

    step_of = Session.step
    monkeypatch.setattr(Session, "step", diverges)
    with pytest.raises(UserError, match=r"became inf at step 7 \(learning rate .*step-000000007"):
        train(small_run("moco_v2", images_path), tmp_path / "run")
    newest = checkpoint.latest(tmp_path / "run")
    assert newest is not None and newest.name == "step-000000007"


def test_a_full_disk_leaves_the_older_checkpoint(images_path: str, tmp_path: Path, monkeypatch):
    save = checkpoint.save_file

    def full(tensors, path):
        if "000000005" in str(path):
            raise OSError(28, "No space left on device")
        save(tensors, path)

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(UserError, match="No space left.*step-000000004 is intact"):
        train(small_run("moco_v2", images_path), tmp_path / "run")
    monkeypatch.setattr(checkpoint, "save_file", save)
    with allowing("tiny"):
        assert resume(tmp_path / "run").finished


def test_accumulated_parts_give_the_gradient_of_their_mean(images_path: str, tmp_path: Path):
    """`test_session.py` compares the gradients; here a run with accumulated parts writes the same state."""
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


def test_knn_of_images_without_labels_is_refused_before_the_first_step(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    without_labels, ones = str(tmp_path / "bare.npz"), str(tmp_path / "ones.npz")
    pixels = np.random.default_rng(0).integers(0, 256, (IMAGES, SIZE, SIZE, 3), np.uint8)
    np.savez(without_labels, images=pixels)
    np.savez(ones, images=pixels, labels=np.arange(IMAGES))
    monkeypatch.setattr(Session, "__init__", lambda *_: pytest.fail("it must be an error before anything is built"))
    for images_path, reason in (
        (without_labels, f"none of the {IMAGES} images has one"),
        (ones, "no class has two images"),
    ):
        run = small_run("moco_v2", images_path, epochs=2)
        with pytest.raises(UserError, match=f"monitoring.knn_every is 2, so .*{reason}.*, or set it to 0"):
            train(replace(run, monitoring=Monitoring(knn_every=2)), tmp_path / "run")
        assert not (tmp_path / "run").exists()
    with pytest.raises(pytest.fail.Exception):  # it is never asked for
        train(replace(run, monitoring=Monitoring(knn_every=3)), tmp_path / "run")


def test_the_environment_is_as_before(images_path: str, tmp_path: Path):
    before = signal.getsignal(signal.SIGINT)
    train(small_run("simclr", images_path, epochs=1), tmp_path / "run")
    assert signal.getsignal(signal.SIGINT) is before and os.environ.get("VANTAGE_CACHE")


def test_edited_settings_are_refused_by_name(images_path: str, tmp_path: Path):
    train(small_run("moco_v2", images_path, epochs=1), tmp_path / "run")
    path = tmp_path / "run" / "settings.json"
    path.write_text(path.read_text().replace('"epochs": 1', '"epochs": 2'))
    with allowing("tiny"), pytest.raises(UserError, match="epochs is 1 in the run, 2 was asked"):
        resume(tmp_path / "run")


def test_a_damaged_record_is_named_and_a_lost_one_is_begun_anew(images_path: str, tmp_path: Path):
    train(small_run("moco_v2", images_path, epochs=1), tmp_path / "run")
    record = tmp_path / "run" / "provenance.json"
    (tmp_path / "run" / "metrics.jsonl").write_text('{"another": "program"}\n')
    for content in ("[", "{}", '[{"data": 1}]', "[3]"):
        record.write_text(content)
        with allowing("tiny"), pytest.raises(UserError, match="provenance.json is damaged"):
            resume(tmp_path / "run")
    record.unlink()
    with allowing("tiny"):
        assert resume(tmp_path / "run").finished
    assert json.loads(record.read_text())[0]["data"]["images"] == IMAGES


def test_resume_says_where_it_goes_on(images_path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    train(small_run("moco_v2", images_path, epochs=1), tmp_path / "run")
    with allowing("tiny"):
        resume(tmp_path / "run", progress=PlainProgress())
        assert "all 6 steps are done already" in capsys.readouterr().err
        shutil.rmtree(tmp_path / "run" / "checkpoint")
        resume(tmp_path / "run", progress=PlainProgress())
        assert "there is no checkpoint yet: starting at the first step of 6" in capsys.readouterr().err


@pytest.mark.parametrize("change", [{"hold_out": 0.25}, {"max_images": 40}])
def test_resuming_on_other_shares_of_the_images_names_the_setting(
    change: dict[str, Any], images_path: str, tmp_path: Path
) -> None:
    run = small_run("moco_v2", images_path, epochs=1)
    train(run, tmp_path / "run")
    other = replace(run, data=replace(run.data, **change))
    ((name, value),) = change.items()
    with pytest.raises(UserError, match=rf"data\.{name} is 0(\.0)? in the run, {value} was asked for"):
        resume(tmp_path / "run", other)


@pytest.mark.slow
def test_two_processes_train_from_the_command_line(images_path: str, tmp_path: Path):
    folder = tmp_path / "run"
    words = ["pretrain", "moco_v2", "--data", images_path, "--out", str(folder), "--size", "16", "--epochs", "1"]
    hardware = ["--batch-size", "16", "--set", "hardware.accelerator=cpu", "--devices", "2", "--precision", "32-true"]
    subprocess.run([sys.executable, "-m", "vantage.cli", *words, *hardware], check=True, timeout=300)
    assert [row["step"] for row in rows(folder)] == [IMAGES // 16]
    image = state(folder)["learner.stores.0.image"]
    assert (image >= 0).sum() == min(IMAGES // 16 * 16, len(image))  # the keys of both processes were remembered


def test_processes_with_other_images_or_settings_are_refused(images_path: str, monkeypatch) -> None:
    """Machines may have the images at other paths and other hardware, but not other images or another recipe."""
    numbers: list[int] = []

    def numbers_of(run: Run, data: dict[str, Any]) -> list[int]:
        numbers.clear()
        check_same_everywhere(run, data)
        return [*numbers]

    monkeypatch.setattr(same_run, "same_on_all", lambda number: numbers.append(number) is None)
    run, data = small_run("moco_v2", images_path, epochs=2), {"fingerprint": "a", "images": 60}
    images, settings = numbers_of(run, data)
    elsewhere = replace(run, data=Data("elsewhere"), hardware=Hardware(devices=2, nodes=2))
    assert numbers_of(elsewhere, data) == [images, settings] and images != settings
    assert numbers_of(run, {**data, "fingerprint": "b"})[0] != images
    assert numbers_of(replace(run, epochs=3), data) == [images, numbers[1]] and numbers[1] != settings
    monkeypatch.setattr(same_run, "same_on_all", lambda number: number == images)
    with pytest.raises(UserError, match="do not have the same settings"):
        check_same_everywhere(run, data)
    monkeypatch.setattr(same_run, "same_on_all", lambda number: False)
    with pytest.raises(UserError, match="do not have the same images"):
        check_same_everywhere(run, data)
