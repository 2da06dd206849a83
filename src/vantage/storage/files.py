"""Files that appear complete or not at all. If one cannot be written, the error says why and what to do."""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any

from vantage.errors import WriteError
from vantage.storage.unfinished import unfinished_file, unfinished_folder

__all__ = [
    "append",
    "digest_of_file",
    "flush",
    "no_temporary_files",
    "not_written",
    "reason",
    "remedy",
    "remove_on_failure",
    "result_file",
    "temporary_folder",
    "write_json",
    "write_result",
    "write_text",
    "atomic_file",
]

_CANNOT_FLUSH = (errno.EINVAL, errno.EBADF, errno.ENOTSUP)
"""What some network file systems (SMB, 9P) answer if a folder is to be flushed: they write its names by themselves."""

_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_IN_THE_WAY = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY)
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that appears at `path` complete or not at all, even if several processes write it at once.

    The process's umask decides who may read it, as for a file that `open` creates. A link is followed; anything other
    than a file, such as a pipe, is written to directly. Raises `OSError`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file() and not path.is_dir():  # a rename would put a file in its place
        with path.open("wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
    with unfinished_file(path) as (temporary, file):
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def append(path: Path, content: bytes) -> None:
    """Add bytes to the end of a file, all or none of them, unless the process is killed. Raises `OSError`."""
    with path.open("ab", buffering=0) as file:
        before = file.seek(0, os.SEEK_END)
        try:
            position = 0
            while position < len(content):  # on a full disk the first write is a short one
                position += file.write(content[position:])
        except BaseException:
            with suppress(OSError):  # it may have no end, such as a pipe
                file.truncate(before)
            raise


def flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk. Raises `OSError`."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as problem:
        if problem.errno not in _CANNOT_FLUSH or not path.is_dir():
            raise
    finally:
        os.close(handle)


@contextmanager
def remove_on_failure(
    path: Path, unless: Callable[[BaseException], bool] = lambda _: False, names: Sequence[str] = ("*",)
) -> Iterator[None]:
    """A context in which a failure removes what was written at `path`: a new file, or what is new inside a folder under
    these names, and the folder if it is new and empty then. If `unless`, which gets the failure, returns true, nothing
    is removed."""
    existing = set(path.iterdir()) if path.is_dir() else None
    is_new = not path.exists()
    try:
        yield
    except BaseException as problem:
        if path.is_dir() and not unless(problem):
            for inside in set(path.iterdir()) - (existing or set()):
                if any(fnmatchcase(inside.name, name) for name in names):
                    shutil.rmtree(inside) if inside.is_dir() and not inside.is_symlink() else inside.unlink()
            if is_new:
                with suppress(OSError):  # it holds files of the user
                    path.rmdir()
        elif is_new and not unless(problem):
            with suppress(NotADirectoryError):  # a file is where its folder should be
                path.unlink(missing_ok=True)
        raise


@contextmanager
def result_file(path: Path, what: str) -> Iterator[IO[bytes]]:
    """A binary file that appears at `path` complete or not at all; an older one stays until then.

    Raises a `WriteError` that names `what` it is, such as "the table", if the disk is full, the folder is not writable,
    or a folder is in the way.
    """
    try:
        with atomic_file(path) as file:
            yield file
    except OSError as problem:
        raise not_written(what, path, problem, remedy(problem)) from problem


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder among the system's temporary files, which is removed afterwards, or by the next command if this process
    is killed.

    Raises `WriteError` if it cannot be made, for example because the disk is full.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(unfinished_folder())
        except OSError as problem:
            raise no_temporary_files(problem) from problem
        yield folder


def write_result(path: Path, content: str | bytes, what: str) -> None:
    """Write text (as UTF-8) or bytes; see `result_file`."""
    with result_file(path, what) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def write_text(path: Path, text: str) -> None:
    """Write text under the file's own name; see `result_file`."""
    write_result(path, text, path.name)


def write_json(path: Path, value: Any) -> None:
    """Write JSON for people; see `result_file`."""
    write_text(path, json.dumps(value, indent=1) + "\n")


def not_written(what: str, path: Path, problem: Exception, then: str) -> WriteError:
    """The error that says what could not be written where, why, and what to do then."""
    return WriteError(f"{what} could not be written to {path}: {reason(problem)}. {then}")


def no_temporary_files(problem: OSError) -> WriteError:
    """The error that says why temporary files could not be written, and what to do then."""
    then = "Free some space, or name another folder in the environment variable TMPDIR"
    return WriteError(f"temporary files could not be written: {reason(problem)}. {then}")


def reason(problem: Exception) -> str:
    """Why a file could not be written, in the system's words, without those that safetensors adds."""
    words = problem.strerror if isinstance(problem, OSError) else None
    return words or str(problem).removeprefix("Error while serializing: I/O error: ").partition(" (os error")[0]


def digest_of_file(path: Path) -> str:
    """SHA-256 of a file, read piece by piece. Raises `OSError`."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remedy(problem: OSError) -> str:
    """What to do about a file that could not be written."""
    if problem.errno in _REFUSED:
        return "Choose a folder that you may write to"
    if problem.errno in _IN_THE_WAY:
        return "Choose another name"
    if problem.errno == errno.ENOENT:
        return "Choose a folder that exists or can be made"
    if problem.errno in _NO_LOCKS:
        return "Choose a folder whose file system has locks, such as one of this machine's own disk"
    if problem.errno is None:  # said by us: another process is at the same file
        return "Wait until it ends, or choose another name"
    return "Free some space or choose another folder"
