"""One run to a folder, and one process at a time that trains it, or does other long work in a folder."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vantage import processes
from vantage.errors import UserError
from vantage.processes.sharing import true_on_all
from vantage.training import checkpoint, settings

__all__ = ["only_writer", "refuse_a_run"]

_PATIENCE = 10.0
"""Seconds. The loading workers of a killed process hold its folder until they see that it is gone."""


@contextmanager
def only_writer(folder: Path, doing: str = "training the run in") -> Iterator[None]:
    """Make sure that no other process trains the run in `folder`, or does other work in it, meanwhile. Raises
    `UserError`, on every process of this run, if one does; `doing` names the work in its message.

    The folder itself is locked: nothing is left in it, and a process that ends, however it ends, releases the lock.
    Where it cannot be made, or its file system knows no locks, nothing is checked.
    """
    new = not folder.exists()
    handle = _open(folder) if processes.rank() == 0 else None
    try:
        if not true_on_all(handle is None or _try_lock(handle)):
            raise UserError(f"another process is {doing} {folder}: wait until it ends, or name another folder")
        yield
    finally:
        if handle is not None:
            os.close(handle)
            if new:
                with suppress(OSError):  # it holds a run now
                    folder.rmdir()


def refuse_a_run(folder: Path) -> None:
    """Raises `UserError` where the folder holds a run, which a new one must not overwrite."""
    if not (folder / settings.FILE).exists():
        return
    if checkpoint.latest(folder) is None:
        raise UserError(
            f"{folder} holds a run that has reached no checkpoint: start it again with `vantage resume {folder}`, "
            "or, if that run has ended, remove the folder, or name another one"
        )
    raise UserError(f"{folder} already holds a run: continue it with `vantage resume {folder}`, or name another folder")


def _open(folder: Path) -> int | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder, os.O_RDONLY)
    except OSError:  # the first file that is written there says so in words
        return None


def _try_lock(handle: int) -> bool:
    import fcntl  # Windows has none, and opens no folder

    began = time.monotonic()
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() - began >= _PATIENCE:
                return False
            time.sleep(0.1)
        except OSError:
            return True
        else:
            return True
