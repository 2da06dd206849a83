"""Checkpoints that are written while the run goes on: the same files, and errors as if it had waited."""

import threading
from dataclasses import replace
from pathlib import Path

import kills
import pytest
import torch
from run_states import assert_equal, rows, state
from safetensors.torch import save_file
from slow_writes import train_and_keep, wait_for_steps
from small_runs import small_run
from torch import Tensor

from vantage.cli import main, program
from vantage.composition.codec import allowing
from vantage.errors import UserError
from vantage.storage.metrics import read_metrics
from vantage.training import session
from vantage.training.folder import checkpoint
from vantage.training.folder.background import BackgroundWriter
from vantage.training.folder.kept_epochs import kept_epochs
from vantage.training.loop import resume, train
from vantage.training.run import Monitoring
from vantage.training.session import Session


def test_a_write_is_in_the_background_and_its_error_is_not_lost() -> None:
    go, written = threading.Event(), []

    def write(name: str) -> None:
        assert go.wait(60)
        written.append(name)
        if name == "bad":
            raise UserError("no room")

    with BackgroundWriter(True) as writer:
        writer.finish()
        writer.begin(lambda: write("good"))
        assert not written and not writer.failed()
        go.set()
        writer.finish()
        assert written == ["good"]
        writer.begin(lambda: write("bad"))
        with pytest.raises(UserError, match="no room"):
            writer.finish()
        assert not writer.failed()
        go.clear()
        writer.begin(lambda: write("last"))
        threading.Timer(0.05, go.set).start()
    assert written[-1] == "last", "what is in flight ends first, however the context is left"
    with BackgroundWriter(False) as writer, pytest.raises(UserError, match="no room"):
        writer.begin(lambda: write("bad"))
    with pytest.raises(UserError, match="no room"), BackgroundWriter(True) as writer:
        writer.begin(lambda: write("bad"))


def test_a_write_that_fails_beside_another_error_is_told(images_path: str, tmp_path: Path, monkeypatch, capfd) -> None:
    """The run ends by a broken step while a checkpoint cannot be written."""
    broken, step_of = threading.Event(), Session.step

    def full(tensors: dict[str, Tensor], path: Path) -> None:
        assert broken.wait(60)
        raise OSError(28, "No space left on device")

    def step(self: Session, batch, number: int) -> Tensor:
        if number == 1:
            broken.set()
            raise UserError("the loss is not finite: lower the learning rate")
        return step_of(self, batch, number)

    monkeypatch.setattr(Session, "step", step)
    monkeypatch.setattr(session, "trains_meanwhile", lambda device: True)
    monkeypatch.setattr(checkpoint, "save_file", full)
    monkeypatch.setattr(program, "_run", lambda words: train(small_run("moco_v2", images_path), tmp_path / "run"))
    assert main(["pretrain"]) == 2
    first, second = capfd.readouterr().err.splitlines()
    assert first == "vantage: the loss is not finite: lower the learning rate"
    assert (
        second.startswith("vantage: what was being written in the background was lost too: ") and "No space" in second
    )


def test_what_is_written_in_the_background_is_in_memory_once(tmp_path: Path, monkeypatch) -> None:
    """Networks are in channels-last layout; what is written is the copy itself, not a copy of it."""
    weight = torch.randn(4, 3, 2, 2).to(memory_format=torch.channels_last)
    copies, written, save = checkpoint.copy_on_cpu({"weight": weight, "step": torch.tensor(3)}), {}, save_file

    def note(tensors: dict[str, Tensor], path: Path) -> None:
        written.update({name: tensor.data_ptr() for name, tensor in tensors.items()})
        save(tensors, path)

    monkeypatch.setattr(checkpoint, "save_file", note)
    loaded, _ = checkpoint.load(checkpoint.save(tmp_path, 1, copies, {}))
    assert written == {name: copy.data_ptr() for name, copy in copies.items()}
    assert torch.equal(loaded["weight"], weight) and copies["weight"].data_ptr() != weight.data_ptr()


@pytest.mark.slow
def test_a_slow_write_holds_the_state_of_its_step(images_path: str, tmp_path: Path, monkeypatch) -> None:
    """On one process, as if it trained on a device. The epochs that are kept are those of a run that waited."""
    run = replace(small_run("interclr", images_path, kills.EPOCHS), monitoring=Monitoring(log_every=1, keep_every=1))
    run = replace(run, optimizer=replace(run.optimizer, momentum=0.9))
    train(run, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(session, "trains_meanwhile", lambda device: True)
        patch.setattr(Session, "step", Session.step)
        patch.setattr(checkpoint, "save_file", checkpoint.save_file)
        wait_for_steps(tmp_path)
        assert train(run, tmp_path / "run").finished
    check_same(tmp_path / "run", tmp_path / "whole")


def check_same(run: Path, whole: Path) -> None:
    assert_equal(state(run), state(whole))
    assert rows(run) == rows(whole)
    ours, theirs = kept_epochs(run), kept_epochs(whole)
    assert list(ours) == list(theirs) == list(range(1, kills.EPOCHS + 1))
    for epoch, folder in ours.items():
        assert_equal(state(folder), state(theirs[epoch]))
        assert rows(folder) == rows(theirs[epoch]) and len(read_metrics(folder)) == epoch


@pytest.mark.slow
@pytest.mark.parametrize("failing", [1, 5])
def test_a_disk_that_fills_in_the_background_ends_the_run(
    failing: int, images_path: str, tmp_path: Path, monkeypatch
) -> None:
    """After a step or two, and whatever was on the disk before goes on."""
    folder, run, save = tmp_path / "run", small_run("moco_v2", images_path), checkpoint.save_file
    train(run, tmp_path / "whole")
    steps = []

    def full(tensors: dict[str, Tensor], path: Path) -> None:
        if f"{failing:09d}" in str(path):
            raise OSError(28, "No space left on device")
        save(tensors, path)

    def step(self: Session, batch, number: int) -> Tensor:
        steps.append(number)
        return step_of(self, batch, number)

    step_of = Session.step
    monkeypatch.setattr(Session, "step", step)
    monkeypatch.setattr(session, "trains_meanwhile", lambda device: True)
    message = "No space left.*step-000000004 is intact" if failing > 1 else "start again at the first step"
    with monkeypatch.context() as patch, pytest.raises(UserError, match=message):
        patch.setattr(checkpoint, "save_file", full)
        train(run, folder)
    assert steps[-1] <= failing + 1
    with allowing("tiny"):
        assert resume(folder).finished
    assert_equal(state(folder), state(tmp_path / "whole"))


@pytest.mark.slow
def test_no_process_waits_for_a_write(images_path: str, tmp_path: Path) -> None:
    """Each write, by the first of two processes, waits until both have taken the next step."""
    for name, slow in (("slow", True), ("plain", False)):
        assert kills.all_finish(2, images_path, tmp_path / name, slow, task=train_and_keep)
    check_same(tmp_path / "slow" / "run", tmp_path / "plain" / "run")
