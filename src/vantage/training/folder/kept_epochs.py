"""Epochs that a run keeps. Each is the folder of a run that was stopped there, so whatever takes a run takes it.

RUN/epochs/00010/     the settings, the provenance, the metrics so far, and the checkpoint after 10 epochs
"""

import os
import shutil
import sys
from itertools import chain
from pathlib import Path

from vantage.errors import UserError
from vantage.storage.files import flush, not_written
from vantage.storage.strangers import check_content
from vantage.training.folder import checkpoint, settings
from vantage.training.run import Run

__all__ = ["FOLDER", "is_kept", "keep_epoch", "keep_if_due", "kept_epochs", "refuse_kept"]

FOLDER = "epochs"
"""Name of the folder inside a run's folder that holds them."""

_COPIED = (settings.FILE, settings.PYTHON_FORM, "views-*.safetensors", "provenance.json", "metrics.jsonl")
"""The files that a run has beside its checkpoints."""


def keep_if_due(run: Run, run_folder: Path, epoch: int) -> None:
    """Keep an epoch that has just ended if it is one of those that the run keeps. The first process calls this."""
    if is_kept(run, epoch):
        keep_epoch(run_folder, epoch)


def is_kept(run: Run, epoch: int) -> bool:
    """Whether an epoch, counted from 1, is one of those that a run keeps."""
    every = run.monitoring.keep_every
    return bool(every) and (epoch % every == 0 or epoch == run.epochs)


def keep_epoch(run_folder: Path, epoch: int) -> Path:
    """Keep the newest checkpoint of a run, written after `epoch` epochs; returns its folder. An epoch that is already
    kept stays as it is.

    The tensors are not copied where the disk allows two names for a file. Raises `WriteError` if the disk is full or
    not writable, and `UserError` if there is no checkpoint.
    """
    folder = run_folder / FOLDER
    check_content(run_folder, (FOLDER,), sys.maxsize)  # each is read as a run of its own, and checked then
    target, draft = folder / f"{epoch:05d}", folder / f".draft-{epoch:05d}"
    if target.exists():
        return target
    newest = checkpoint.latest(run_folder)
    if newest is None:
        raise UserError(f"{run_folder} holds no checkpoint of epoch {epoch} to keep")
    try:
        shutil.rmtree(draft, ignore_errors=True)  # left by a process that was killed while writing
        draft.mkdir(parents=True)
        for file in chain.from_iterable(map(run_folder.glob, _COPIED)):
            shutil.copyfile(file, draft / file.name)
        (copy := draft / newest.parent.name / newest.name).mkdir(parents=True)
        for file in newest.iterdir():  # not `copytree`, whose error does not say why
            _link(file, copy / file.name)
        for path in (*draft.rglob("*"), draft):
            flush(path)
        draft.rename(target)
        flush(folder)
    except OSError as problem:
        shutil.rmtree(draft, ignore_errors=True)
        raise not_written(f"epoch {epoch}", folder, problem, "Free some space and resume the run") from problem
    return target


def kept_epochs(run_folder: Path) -> dict[int, Path]:
    """The folders of the epochs that a run has kept, by epoch, the earliest first."""
    folders = [path for path in (run_folder / FOLDER).glob("*") if path.name.isdecimal()]
    return {int(path.name): path for path in sorted(folders, key=lambda path: int(path.name))}


def refuse_kept(folder: Path) -> None:
    """Raises `UserError` if the folder is an epoch that a run keeps: continuing it would replace what it holds."""
    if folder.parent.name == FOLDER and (folder.parent.parent / settings.FILE).exists():
        raise UserError(
            f"{folder} is an epoch that {folder.parent.parent} keeps: start a new run from it (--init), or copy the"
            " folder elsewhere and continue the copy"
        )


def _link(file: Path, target: Path) -> None:
    """A second name for a file that never changes; a copy where the disk has no such names."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)
