"""How a run stops before its end: by signals, without a worker, on a full disk, by a loss that is not finite."""

import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_states import assert_equal, rows, state, wait_for_a_checkpoint
from small_runs import new_process, small_run, train_in_process
from torch import Tensor
from torch.utils.data import get_worker_info

from vantage.cli import main
from vantage.composition.codec import allowing
from vantage.data import loading
from vantage.errors import UserError
from vantage.progress import BarProgress
from vantage.training.folder import checkpoint
from vantage.training.loop import resume, train
from vantage.training.run import Monitoring
from vantage.training.session import Session


@pytest.mark.slow
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
    process.join(timeout=600)
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
    metrics = tmp_path / "run" / "metrics.jsonl"  # lines of progress skip most epochs
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE) as process:
        while not metrics.exists() or metrics.read_text().count("\n") < 2:
            assert process.poll() is None
            time.sleep(0.01)
        assert process.stderr is not None
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


def test_a_loss_that_is_not_finite_stops_by_name(images_path: str, tmp_path: Path, monkeypatch):
    def diverges(self: Session, batch, step: int) -> Tensor:
        loss = step_of(self, batch, step)
        return loss * (math.inf if step == 7 else 1.0)

    step_of = Session.step
    monkeypatch.setattr(Session, "step", diverges)
    progress, run = BarProgress(), small_run("moco_v2", images_path)
    run = replace(run, hardware=replace(run.hardware, precision="32-true"))
    said = r"became inf at step 7 \(learning rate .*step-000000007\. Lower the learning rate$"  # it uses float32
    with pytest.raises(UserError, match=said):
        train(run, tmp_path / "run", progress)
    assert not progress.bar.live.is_started, "the bar would stay under the message, and the cursor hidden"
    newest = checkpoint.latest(tmp_path / "run")
    assert newest is not None and newest.name == "step-000000007"


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("warm", [False, True])
def test_a_full_disk_at_the_first_checkpoint_keeps_the_run(warm: bool, images_path: str, tmp_path: Path, monkeypatch):
    """It is then trained from its first step, or from its warm start. Another failure there leaves nothing."""
    run, folder, whole = small_run("moco_v2", images_path), tmp_path / "run", tmp_path / "whole"
    train(small_run("moco_v2", images_path, epochs=1), tmp_path / "start")
    init = tmp_path / "start" if warm else None
    train(run, whole, init=init)

    def fail(problem: Exception) -> None:
        raise problem

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_file", lambda *_: fail(RuntimeError("a bug")))
        with pytest.raises(RuntimeError, match="a bug"):
            train(run, folder, init=init)
        assert not folder.exists()
        patch.setattr(checkpoint, "save_file", lambda *_: fail(OSError(28, "No space left on device")))
        start_again = "No space left on device. Free some space and start again at the first step with `vantage resume"
        with pytest.raises(UserError, match=start_again):
            train(run, folder, init=init)
        with pytest.raises(UserError, match="reached no checkpoint: start it again with `vantage resume"):
            train(run, folder, init=init)
        with allowing("tiny"), pytest.raises(UserError, match=start_again):
            resume(folder)
    with allowing("tiny"):
        assert resume(folder).finished
    assert_equal(state(folder), state(whole))
    assert rows(folder) == rows(whole)
