"""Features of frozen encoders, made once: a file takes them as they are made, so a stopped making goes on; and where
they are many they are read from it as they are used.

n: images   b: images of a batch   d: width of the features
"""

import fcntl
import io
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vantage.data.sources.source import Source, cache_key
from vantage.encoding import Work
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.features import batches, embed
from vantage.storage.cache import hash_of

__all__ = ["features_in_parts", "features_of"]


def features_of(trained: FrozenEncoder, source: Source, work: Work) -> Float[Tensor, "n d"]:
    """Features of every image, on the CPU, from the cache where this very encoder has seen these very images before.

    Those that take more than `work.resident_bytes` are mapped: the system reads them as they are used, and drops them
    when memory is short. Where they cannot be kept (a cache that is read-only or being filled by another process, or a
    disk of which they would take more than half of what is free), they are held in memory.
    """
    facts = (trained.digest(), cache_key(source), repr(trained.view), work.resolved_device().type, "2")
    kept = work.cache / "features" / f"{hash_of(fact.encode() for fact in facts)}.npy"
    shape = (len(source), trained.width)
    if not _whole(kept, shape) and not _made(trained, source, work, kept):
        return embed(trained, source, work).vector
    start = len(_header(shape))
    if 4 * math.prod(shape) <= work.resident_bytes or not math.prod(shape):
        return torch.from_numpy(np.fromfile(kept, np.float32, offset=start).reshape(shape))
    return torch.from_numpy(np.memmap(kept, np.float32, "c", start, shape))


def features_in_parts(trained: FrozenEncoder, source: Source, work: Work) -> Iterator[Float[Tensor, "b d"]]:
    """Features of every image in order, on the device of the work, some at a time: from the cache where those of all
    images stay within `work.resident_bytes`, else made while they are asked for and not kept."""
    if 4 * len(source) * trained.width <= work.resident_bytes:
        parts: Iterator[Tensor] = iter(features_of(trained, source, work).split(work.batch_size))
    else:
        parts = (part for _, part in batches(trained, source, work))
    for part in parts:
        yield part.to(work.resolved_device())


def _header(shape: tuple[int, int]) -> bytes:
    """What a NumPy file of such rows begins with."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return file.getvalue()


def _whole(path: Path, shape: tuple[int, int]) -> bool:
    header = _header(shape)
    try:
        with path.open("rb") as file:
            right = file.read(len(header)) == header
            return right and os.fstat(file.fileno()).st_size == len(header) + 4 * math.prod(shape)
    except OSError:
        return False


def _made(trained: FrozenEncoder, source: Source, work: Work, kept: Path) -> bool:
    """Whether the features could be kept. Those of whole batches that an earlier making left are not made again."""
    header, row, part = _header((len(source), trained.width)), 4 * trained.width, kept.with_suffix(".part")
    try:
        with _alone(part) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            whole = (size - len(header)) // (row * work.batch_size) if row and file.read(len(header)) == header else 0
            done = min(max(0, whole) * work.batch_size, len(source))
            if row * (len(source) - done) > shutil.disk_usage(kept.parent).free // 2:
                return False
            file.seek(0)
            file.write(header)
            file.truncate(file.seek(len(header) + done * row))
            for _, features in batches(trained, source, work, done):
                file.write(features.contiguous().numpy().data)
            file.flush()
            os.fsync(file.fileno())
            part.replace(kept)
    except OSError:
        return False
    return True


@contextmanager
def _alone(path: Path) -> Iterator[IO[bytes]]:
    """A file to read and write that no other process writes to meanwhile. Raises `OSError` where one does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(file.fileno()), path.stat()):
            raise OSError("another process has just finished it")
        yield file
