"""Files that appear whole or not at all; what prevents one from being written is reported as a mistake to mend."""

import errno
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from vantage.errors import UserError

__all__ = ["digest_of_file", "result_file", "write_json", "write_result", "write_text", "written_whole"]

_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_IN_THE_WAY = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY)


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
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
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def result_file(path: Path, what: str) -> Iterator[IO[bytes]]:
    """A binary file that appears at `path` complete or not at all; an older one stays until then.

    Raises `UserError` that names `what` it is, such as "the table", if the disk is full, the folder is not writable, or
    a folder is in the way.
    """
    try:
        with written_whole(path) as file:
            yield file
    except OSError as problem:
        message = f"{what} could not be written to {path}: {problem.strerror or problem}"
        raise UserError(f"{message}. {_remedy(problem)}") from problem


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


def digest_of_file(path: Path) -> str:
    """SHA-256 of a file, read piece by piece. Raises `OSError`."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remedy(problem: OSError) -> str:
    if problem.errno in _REFUSED:
        return "Choose a folder that you may write to"
    if problem.errno in _IN_THE_WAY:
        return "Choose another name"
    return "Free some space or choose another folder"
