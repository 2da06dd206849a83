"""Results on the disk: each file is there whole or not at all, and what hinders it is told as a mistake to mend."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from vantage.errors import UserError
from vantage.storage.cache import written_whole

__all__ = ["result_file", "write_result"]

_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_IN_THE_WAY = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY)


@contextmanager
def result_file(path: Path, what: str) -> Iterator[IO[bytes]]:
    """A binary file that appears at `path` complete or not at all; an older one stays until then.

    Raises `UserError` that names `what` it is, such as "the table", where the disk is full, the folder must not be
    written to, or a folder is in the way.
    """
    try:
        with written_whole(path) as file:
            yield file
    except OSError as problem:
        told = f"{what} could not be written to {path}: {problem.strerror or problem}"
        raise UserError(f"{told}. {_remedy(problem)}") from problem


def write_result(path: Path, content: str | bytes, what: str) -> None:
    """Write text (as UTF-8) or bytes; see `result_file`."""
    with result_file(path, what) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def _remedy(problem: OSError) -> str:
    if problem.errno in _REFUSED:
        return "Choose a folder that you may write to"
    if problem.errno in _IN_THE_WAY:
        return "Choose another name"
    return "Free some space or choose another folder"
