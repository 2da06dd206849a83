"""Moments at which a run is killed by SIGKILL: each is a function that is called before the run, and arms it."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from vantage.memory import clustered, reclustered
from vantage.storage.metrics import Metrics
from vantage.training.folder import checkpoint, kept_epochs
from vantage.training.session import Session
from vantage.training.watching import probe

__all__ = ["IN_TURN", "KEEPING", "KILLED_AFTER", "MOMENTS", "die"]

KILLED_AFTER = 9
"""The step at which runs are killed; an epoch has six."""


def die() -> None:
    """End this process without a chance to clean up."""
    os.kill(os.getpid(), signal.SIGKILL)


def in_mid_epoch() -> None:
    """Die at a step that is not the first of its epoch."""
    step_of = Session.step

    def step(self: Session, batch: Any, number: int) -> torch.Tensor:
        if number == KILLED_AFTER:
            die()
        return step_of(self, batch, number)

    Session.step = step


def at_the_end_of_an_epoch() -> None:
    """Die after an epoch's row of metrics is written, and before its checkpoint."""
    write = Metrics.write

    def write_and_die(self: Metrics, row: dict[str, Any]) -> None:
        write(self, row)
        if row["epoch"] == 2:
            die()

    Metrics.write = write_and_die


def during_clustering() -> None:
    """Die after an iteration of k-means, when at least one step has been taken."""
    steps, step_of, kmeans = [0], Session.step, clustered.kmeans

    def step(self: Session, batch: Any, number: int) -> torch.Tensor:
        steps[0] += 1
        return step_of(self, batch, number)

    def kmeans_and_die(vector: Any, clusters: int, seed: int, iterations: int = 20) -> Any:
        if steps[0] == 0:
            return kmeans(vector, clusters, seed, iterations)
        kmeans(vector, clusters, seed, 1)
        return die()

    Session.step = step
    clustered.kmeans = reclustered.kmeans = kmeans_and_die


def during_a_checkpoint() -> None:
    """Die when half of a checkpoint's tensors are on disk."""
    save = checkpoint.save_file

    def save_half(tensors: dict[str, torch.Tensor], path: Path) -> None:
        save(tensors, path)
        if f"{KILLED_AFTER:09d}" in str(path):
            os.truncate(path, os.path.getsize(path) // 2)
            die()

    checkpoint.save_file = save_half


def during_an_evaluation() -> None:
    """Die during kNN at the end of the second epoch, with the networks in evaluation mode."""
    steps, step_of, inside = [0], Session.step, probe.in_evaluation

    def step(self: Session, batch: Any, number: int) -> torch.Tensor:
        steps[0] = number
        return step_of(self, batch, number)

    @contextlib.contextmanager
    def evaluate_and_die(*networks: Any) -> Iterator[Any]:
        with inside(*networks) as value:
            if steps[0] >= KILLED_AFTER:
                die()
            yield value

    Session.step = step
    probe.in_evaluation = evaluate_and_die


def before_an_epoch_is_kept() -> None:
    """Die after the checkpoint of an epoch that is to be kept, before any of its files."""
    kept_epochs.keep_epoch = lambda run_folder, epoch: die()


def between_files_of_a_kept_epoch() -> None:
    """Die when a kept epoch has its settings, its metrics and one of the two files of its checkpoint."""
    link = kept_epochs._link

    def link_and_die(file: Path, target: Path) -> None:
        link(file, target)
        die()

    kept_epochs._link = link_and_die


def when_flushed(name: str) -> Callable[[], None]:
    """A moment: die when a folder whose name begins like this is on the disk."""

    def begin() -> None:
        flush = kept_epochs.flush

        def flush_and_die(path: Path) -> None:
            flush(path)
            if path.name.startswith(name):
                die()

        kept_epochs.flush = flush_and_die

    return begin


MOMENTS: dict[str, Callable[[], None]] = {
    "mid-epoch": in_mid_epoch,
    "epoch end": at_the_end_of_an_epoch,
    "during clustering": during_clustering,
    "during a checkpoint's write": during_a_checkpoint,
    "during an evaluation": during_an_evaluation,
}

IN_TURN = (
    "during clustering",
    "during a checkpoint's write",
    "mid-epoch",
    "during an evaluation",
    "epoch end",
)
"""The moments in an order in which a run that is resumed after one of them still has the next ones before it."""

KEEPING: dict[str, Callable[[], None]] = {
    "before an epoch is kept": before_an_epoch_is_kept,
    "between its files": between_files_of_a_kept_epoch,
    "before it has its name": when_flushed(".draft-"),
    "after it has its name": when_flushed(kept_epochs.FOLDER),
}
"""Moments at which an epoch is kept."""
