"""Files and folders that are not finished, locked by the process that works on them.

A process that is killed (SIGKILL, a power cut, too little memory) leaves what it had not finished. Its lock ends with
it, so the next process can tell and writes over the file, or removes the folder. Where a file system has no locks,
such leftovers stay.
"""

import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from vantage.storage.locks import take_lock

__all__ = ["is_unfinished", "unfinished_file", "unfinished_folder", "unfinished_name"]

_ENDING = ".unfinished"
_PREFIX = "vantage-temporary-"
_TEMPORARY = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")
_SECONDS_TO_LOCK = 60.0
"""Age from which a temporary folder without a lock is abandoned: the process that has just made it may not hold it
yet."""


@contextmanager
def unfinished_file(path: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """An empty binary file beside `path`, and its path; the caller renames or removes it while the context lasts.

    It is `NAME.unfinished`, even if a killed process left a file there; while another process writes that one, it has
    a random name. Raises `OSError`.
    """
    usual = path.with_name(unfinished_name(path.name))
    file = _usual_file(usual)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}") if file is None else usual
    with file or temporary.open("xb") as opened:
        yield temporary, opened


def unfinished_name(name: str) -> str:
    """The usual name of a file while it is written."""
    return name + _ENDING


def is_unfinished(path: Path) -> bool:
    """Whether a process is writing the file at `path`, or was killed while it did."""
    return path.with_name(unfinished_name(path.name)).is_file()


@contextmanager
def unfinished_folder() -> Iterator[Path]:
    """A folder among the system's temporary files, which is removed afterwards. Folders of killed processes are removed
    before. Raises `OSError`."""
    _remove_abandoned(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name:
        handle = os.open(name, os.O_RDONLY)
        try:
            take_lock(handle, without=False)
            yield Path(name)
        finally:
            os.close(handle)


def _usual_file(path: Path) -> IO[bytes] | None:
    """The file at `path`, emptied and locked; None if another process holds it, or if it is not a file that this user
    alone has made: whoever else has it open could change the result later."""
    try:
        handle, is_new = _open(path)
    except OSError:  # the open under another name reports it
        return None
    facts = os.fstat(handle)
    is_ours = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and facts.st_nlink == 1
    # A new one needs no lock: where there are none, others cannot lock it either, and take another name.
    if not (is_new or is_ours) or not take_lock(handle, without=is_new) or not _is_at(handle, path):
        os.close(handle)
        return None
    os.ftruncate(handle, 0)
    return os.fdopen(handle, "wb")


def _open(path: Path) -> tuple[int, bool]:
    """What is at `path`, opened for writing, and whether it has just been made. Raises `OSError`."""
    how = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(path, how | os.O_CREAT | os.O_EXCL, 0o666), True
    except FileExistsError:
        return os.open(path, how), False


def _remove_abandoned(folder: Path) -> None:
    """Remove this user's temporary folders whose processes have ended, if the folder they lie in can be listed."""
    paths = list[Path]()
    with suppress(OSError):
        paths.extend(filter(lambda path: _TEMPORARY.fullmatch(path.name), folder.iterdir()))
    for path in paths:
        with suppress(OSError):  # another process has just removed it
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
            try:
                facts = os.fstat(handle)
                old = time.time() - facts.st_mtime > _SECONDS_TO_LOCK
                if old and facts.st_uid == os.geteuid() and take_lock(handle, without=False):
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file still is the one at `path`: the process that held it may have renamed it meanwhile."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except OSError:
        return False
