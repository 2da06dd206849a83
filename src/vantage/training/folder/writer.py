"""Only one run in a folder, and only one process at a time that trains it or does other long work there; and only one
training at a time in a process."""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vantage import processes
from vantage.errors import UserError, WriteError
from vantage.processes.sharing import true_on_all
from vantage.storage.locks import take_lock
from vantage.training.folder import checkpoint, settings

__all__ = ["must_stay", "only_training", "only_writer", "refuse_a_run"]

_PATIENCE = 10.0
"""Seconds to wait for a lock: workers of a killed process keep it until they notice that the process is gone."""

_training = threading.RLock()


@contextmanager
def only_training() -> Iterator[None]:
    """A context in which no other thread of this process trains. Raises `UserError` if another one does: torch's random
    numbers and its number of threads are those of the process, so each would disturb the other's numbers."""
    lock = _training
    if not lock.acquire(blocking=False):
        raise UserError(
            "another thread of this process is training a run, and would draw from the same random numbers: wait until"
            " it ends, or train in a process of its own"
        )
    try:
        yield
    finally:
        lock.release()


@contextmanager
def only_writer(folder: Path, doing: str = "training the run in") -> Iterator[None]:
    """A context in which no other process trains the run in `folder`, or does other work there. Raises `UserError`, on
    every process of this run, if another one does; `doing` describes the work in the message.

    The folder itself is locked, so no lock file is left in it, and a process releases the lock however it ends. If the
    folder cannot be made, or its file system has no locks, nothing is checked.
    """
    new = not folder.exists()
    handle = _open(folder) if processes.rank() == 0 else None
    try:
        if not true_on_all(handle is None or _try_lock(handle)):
            raise UserError(f"another process is {doing} {folder}: wait until it ends, or name another folder")
        yield
    finally:
        if handle is not None:
            _unlock(handle)
            os.close(handle)
            if new:
                with suppress(OSError):  # it holds a run now
                    folder.rmdir()


def _forget_other_threads() -> None:
    """A forked process has none of them."""
    global _training
    _training = threading.RLock()


os.register_at_fork(after_in_child=_forget_other_threads)


def refuse_a_run(folder: Path) -> None:
    """Raises `UserError` if the folder holds a run, which a new one must not overwrite."""
    if not (folder / settings.FILE).exists():
        return
    if checkpoint.latest(folder) is None:
        raise UserError(
            f"{folder} holds a run that has reached no checkpoint: start it again with `vantage resume {folder}`, "
            "or, if that run has ended, remove the folder, or name another one"
        )
    raise UserError(f"{folder} already holds a run: continue it with `vantage resume {folder}`, or name another folder")


def must_stay(folder: Path, problem: BaseException) -> bool:
    """Whether the folder of a run keeps its files after this failure: it has a checkpoint; or the run had begun when
    the disk was full, and `resume` starts it again; or cleaning up is for the first process."""
    begun = (folder / settings.FILE).exists()  # the last file that is written before the first step
    return processes.rank() > 0 or checkpoint.latest(folder) is not None or (begun and isinstance(problem, WriteError))


def _open(folder: Path) -> int | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder, os.O_RDONLY)
    except OSError:  # writing the first file there reports it in words
        return None


def _unlock(handle: int) -> None:
    """Release the lock, if there is one, also for workers that outlive this context, such as those that the traceback
    of an error keeps in a notebook: closing leaves it to them."""
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)


def _try_lock(handle: int) -> bool:
    began = time.monotonic()
    while not take_lock(handle, without=True):
        if time.monotonic() - began >= _PATIENCE:
            return False
        time.sleep(0.1)
    return True
