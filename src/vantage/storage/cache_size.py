"""Keeps the large files of a cache below a bound: those that were not used for the longest time go first.

Arrays, decompressed tars and the states of unfinished work count and may go. Listings, indexes and results stay: they
are small, and one may have taken hours. Who uses a file holds a lock on it (`in_use`; for a draft, its writer's), and a
locked file is never removed. A file that is open can be read to its end even if it is removed.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from vantage.errors import UserError

__all__ = [
    "IN_USE",
    "KINDS",
    "CacheFile",
    "cache_files",
    "given_bound",
    "in_use",
    "leave_half",
    "make_room",
    "most_bytes",
    "remove",
    "try_to_remove",
]

KINDS: Mapping[str, str] = {
    "decoded": "images of small sets, decoded",
    "tars": "decompressed tars, and where images lie in tars",
    "features": "features of frozen encoders",
    "squares": "images and masks for segmentation",
    "maps": "feature maps for segmentation",
    "linear": "states of linear classifiers",
    "finetune": "states and results of fine-tuning",
    "decoders": "states of decoders for segmentation",
    "detectors": "states of detectors",
    "svm": "results of SVMs",
    "lowshot": "results of low-shot SVMs",
    "listings": "names of the images in folders",
    "shards": "where images lie in tar shards",
    "scans": "which images cannot be read",
    "statistics": "mean and deviation of the colors of sets",
}
"""Subfolders of a cache, and what is in them. Anything else in its folder is somebody else's, or was downloaded."""

VARIABLE = "VANTAGE_CACHE_SIZE"
"""The environment variable that gives the bound."""

IN_USE = "in use"
"""Why a file that some process uses is not removed."""

_MOST = 20 * 10**9
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_DAY = 86_400.0

_NAME = re.compile(
    r"(?:set-)?[0-9a-f]{32}"
    r"(?:(?P<large>\.npy|\.tar|\.safetensors)|\.json|-bad-images\.txt)"
    r"(?:\.draft(?P<note>\.json)?)?(?P<temporary>\.(?:[0-9a-f]{8}|unfinished))?"
)


@dataclass(frozen=True)
class CacheFile:
    """A file of a cache."""

    kind: str
    """The subfolder that it lies in."""

    path: Path
    """Its path."""

    size: int
    """Bytes."""

    used: float
    """When it was written or last opened, in seconds since 1970."""

    large: bool
    """Whether it counts for the bound, and may be removed to make room."""

    temporary: bool
    """Whether it has a name for the time in which it is written."""


def cache_files(cache: Path, small: bool = True) -> list[CacheFile]:
    """The files of a cache, or without `small` the large ones only. Links, and files with other names than this version
    gives, are none of them."""
    files = []
    for kind in KINDS:
        for entry in _entries(cache / kind):
            name = _NAME.fullmatch(entry.name)
            large = bool(name and name["large"] and not name["note"] and kind != "shards")
            if name and (large or small) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):  # another process has just removed it
                    state = entry.stat(follow_symlinks=False)
                    temporary = bool(name["temporary"])
                    files.append(CacheFile(kind, Path(entry.path), state.st_size, state.st_mtime, large, temporary))
    return files


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return [] if folder.is_symlink() else list(os.scandir(folder))
    except OSError:  # there is none, or it cannot be listed
        return []


def given_bound() -> int | None:
    """The bytes that VANTAGE_CACHE_SIZE gives, or None if it is not set. Raises `UserError` if it is no size."""
    text = os.environ.get(VARIABLE, "")
    if not text:
        return None
    size = re.fullmatch(r"(\d{1,12}(?:\.\d{1,12})?)\s*([KMGT]B)", text.strip(), re.IGNORECASE)
    if size is None:
        raise UserError(f"{VARIABLE} is {text!r}: give a size in KB, MB, GB or TB, such as 20GB")
    return int(float(size[1]) * _UNITS[size[2].upper()])


def most_bytes(cache: Path) -> int:
    """The bound on a cache's large files together, in bytes: `VANTAGE_CACHE_SIZE`, or else 20 GB or a tenth of the
    disk, whichever is less. Raises `UserError` if the variable is no size."""
    if (bound := given_bound()) is not None:
        return bound
    try:
        return min(_MOST, shutil.disk_usage(_existing(cache)).total // 10 or _MOST)
    except OSError:
        return _MOST


def make_room(file: Path, size: int) -> None:
    """Before `file` of a cache is written with `size` bytes, remove what was not used for the longest time, until all
    large files of this cache stay within its bound.

    Other files than those of a cache's subfolders are ignored. What is in use stays, so the bound may be exceeded, also
    by a file that is larger than the bound. Raises `UserError` as `most_bytes` does.
    """
    cache = file.parent.parent
    if file.parent.name not in KINDS:
        return
    others = [other for other in cache_files(cache, small=False) if other.path != file]
    excess = sum(other.size for other in others) + size - most_bytes(cache)
    for other in sorted(others, key=lambda other: other.used):
        if excess <= 0:
            return
        if remove(other):
            excess -= other.size


def remove(file: CacheFile) -> bool:
    """Remove a file, unless it is in use; returns whether it is gone. A temporary file counts as in use for a day."""
    return not try_to_remove(file)


def try_to_remove(file: CacheFile) -> str:
    """Remove a file, as `remove` does; returns why it is still there, or nothing if it is gone."""
    if file.temporary and time.time() - file.used < _DAY:
        return IN_USE
    try:
        # Open for writing: network file systems grant an exclusive lock only then.
        with os.fdopen(os.open(file.path, os.O_RDWR | os.O_NOFOLLOW), "rb") as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(descriptor.fileno()), file.path.lstat()):
                return IN_USE  # another process has just replaced it
            file.path.unlink()
    except FileNotFoundError:  # another process has just removed it
        return ""
    except BlockingIOError:
        return IN_USE
    except OSError as problem:  # it is somebody else's, or the cache is read-only
        return problem.strerror or str(problem)
    if file.path.suffix == ".draft":
        with contextlib.suppress(OSError):
            file.path.with_name(file.path.name + ".json").unlink()
    return ""


def in_use(path: Path) -> IO[bytes]:
    """A file of a cache, opened for reading. As long as it is open, also in a fork, no process removes it to make room.

    Raises `OSError` if there is no file.
    """
    file = path.open("rb")
    with contextlib.suppress(OSError):  # it is somebody else's
        os.utime(file.fileno())
    with contextlib.suppress(OSError):  # it is being removed, and stays readable here; or there are no locks
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return file


def leave_half(file: Path, size: int) -> None:
    """Raises `OSError` if `size` bytes at this path would take more than half of the free disk."""
    if 2 * size > shutil.disk_usage(_existing(file.parent)).free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
