"""Before the first step, a run says how much of the disk its checkpoints will take."""

import shutil
from collections import namedtuple
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from small_runs import IMAGES, small_run, write_images
from torch import nn

import vantage
from vantage.learner import Learner
from vantage.memory import Bank
from vantage.progress import QuietProgress
from vantage.training.folder.checkpoint import latest
from vantage.training.loop import train
from vantage.training.optimizers import LARS, SGD, AdamW, Optimizer
from vantage.training.run import Monitoring, Run
from vantage.training.start.disk import checkpoint_bytes, tell_disk

Usage = namedtuple("Usage", "total used free")


class Lines(QuietProgress):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.warnings: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def learner_of(run: Run, images: int) -> Learner:
    return Learner(run.encoders, run.branches, images, run.seed)


@pytest.mark.parametrize("name", ["moco_v2", "interclr", "cmc", "infomin", "everything"])
@pytest.mark.parametrize("optimizer", [SGD(), LARS(), AdamW()], ids=lambda choice: type(choice).__name__)
def test_a_checkpoint_is_as_large_as_was_said(name: str, optimizer: Optimizer, tmp_path: Path) -> None:
    run = replace(small_run(name, write_images(tmp_path / "images.npz")), optimizer=optimizer, epochs=1)
    train(run, tmp_path / "run")
    newest = latest(tmp_path / "run")
    assert newest is not None
    size = (newest / "tensors.safetensors").stat().st_size
    told = checkpoint_bytes(run, learner_of(run, IMAGES))
    names = 100_000  # of the tensors
    assert told <= size <= told + names, (told, size)


@dataclass(frozen=True)
class Own(Optimizer):
    """A user's optimizer, which keeps nothing for each weight."""

    def build(self, module: nn.Module, lr: float = 0.0) -> torch.optim.Optimizer:
        optimizer = torch.optim.SGD(module.parameters(), lr)
        optimizer.state = {}  # pyright: ignore
        return optimizer


def test_the_state_of_an_own_optimizer_may_be_unknown(tmp_path: Path) -> None:
    run = small_run("moco_v2", write_images(tmp_path / "images.npz"))
    learner = learner_of(run, IMAGES)
    plain = replace(run, optimizer=SGD(momentum=0.0, weight_decay=0.0))
    assert checkpoint_bytes(replace(run, optimizer=Own()), learner) == checkpoint_bytes(plain, learner)


def test_a_large_bank_and_kept_epochs_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = vantage.moco_v2(32)
    run = replace(run, branches=(replace(run.branches[0], memory=Bank()),), epochs=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**13, 0, 10**13))
    small, large, kept = Lines(), Lines(), Lines()
    tell_disk(run, learner_of(run, 1_000), tmp_path, small)
    learner = learner_of(run, 400_000)
    tell_disk(run, learner, tmp_path, large)
    tell_disk(replace(run, monitoring=Monitoring(keep_every=30)), learner, tmp_path, kept)
    assert small.lines == [] and small.warnings == large.warnings == kept.warnings == []
    assert large.lines == ["a checkpoint has 346 MB: up to 3 are on the disk at a time, 1.0 GB in all"]
    assert kept.lines == [
        "a checkpoint has 346 MB: up to 3 are on the disk at a time, and 4 epochs kept for good, 2.4 GB in all"
    ]


def test_too_small_a_disk_is_told_before_the_first_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = small_run("moco_v2", write_images(tmp_path / "images.npz"))
    usual = shutil.disk_usage
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usual(path)._replace(free=1))
    progress = Lines()
    train(replace(run, epochs=1), tmp_path / "run", progress)
    (warning,) = progress.warnings
    assert "left: free some space, or training stops once the disk is full" in warning
    assert f"{tmp_path / 'run'} has 1 MB left" in warning
