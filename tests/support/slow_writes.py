"""Checkpoints that are written slowly, while the run goes on."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import kills
import small_runs
from torch import Tensor

from vantage import processes
from vantage.composition.codec import allowing
from vantage.training.folder import checkpoint
from vantage.training.loop import train
from vantage.training.run import Hardware, Monitoring
from vantage.training.session import Session

PATIENCE = 60.0
"""Seconds that a write waits for steps before it fails."""


def wait_for_steps(folder: Path) -> None:
    """From now on, a checkpoint is written only when every process has taken another step, and fails without it."""
    save, step_of = checkpoint.save_file, Session.step

    def step(self: Session, batch: Any, number: int) -> Tensor:
        loss = step_of(self, batch, number)
        (folder / f"{number}.{processes.rank()}").touch()
        return loss

    def save_later(tensors: dict[str, Tensor], path: Path) -> None:
        number, last = int(path.parent.name.removeprefix(".draft-")), kills.EPOCHS * small_runs.IMAGES // 8
        end = time.monotonic() + PATIENCE
        while number < last and len(list(folder.glob(f"{number}.*"))) < processes.count():
            if time.monotonic() > end:
                raise OSError("no step was taken while a checkpoint was written")
            time.sleep(0.005)
        save(tensors, path)

    Session.step, checkpoint.save_file = step, save_later


def train_and_keep(rank: int, count: int, images: str, folder: Path, slow: bool) -> None:
    """Train as one of the processes and keep every epoch; with `slow`, each write waits for steps."""
    folder.mkdir(exist_ok=True)
    kills.join(rank, count, folder / "meeting")
    if slow:
        wait_for_steps(folder)
    run = small_runs.small_run("interclr", images, kills.EPOCHS)
    hardware, monitoring = Hardware("cpu", devices=count, precision="32-true"), Monitoring(log_every=1, keep_every=1)
    with allowing("tiny"):
        train(replace(run, hardware=hardware, monitoring=monitoring), folder / "run")
