"""Tar shards for tests, written with Python's own `tarfile`."""

import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

Files = Sequence[tuple[str, bytes]]
COUNTS = (5, 0, 9, 1, 7)
"""Images of the shards that most tests read."""


def png(number: int, size: int = 8) -> bytes:
    """A different image for each number."""
    pixels = np.random.default_rng(number).integers(0, 256, (size, size, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def write_shard(path: Path, files: Files, format: int = tarfile.PAX_FORMAT) -> Path:
    """A shard with these members, in this order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=format) as tar:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def samples(first: int, count: int, extra: Mapping[str, bytes] | None = None) -> list[tuple[str, bytes]]:
    """Members of `count` samples, labeled by the number of the image modulo 3."""
    files = []
    for number in range(first, first + count):
        files += [(f"{number:04d}.png", png(number)), (f"{number:04d}.cls", str(number % 3).encode())]
        files += [(f"{number:04d}.{ending}", content) for ending, content in (extra or {}).items()]
    return files


def write_shards(folder: Path, counts: Sequence[int]) -> Path:
    """A folder of shards `train-000000.tar`, …, with these numbers of images; image numbers continue across shards."""
    first = 0
    for number, count in enumerate(counts):
        write_shard(folder / f"train-{number:06d}.tar", samples(first, count))
        first += count
    return folder
