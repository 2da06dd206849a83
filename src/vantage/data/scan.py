"""Find the images that cannot be read before a run meets them.

Every image is decoded once, as training would decode it, in several threads (the decoders release the interpreter's
lock). The result is cached under the source's fingerprint, so the same images are scanned once.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from vantage.data.sources.source import Source, SourceSubset
from vantage.errors import DataError, UnreadableImage
from vantage.storage.cache import cache_folder, hash_of, read_cached, try_write, try_write_json

OnBadImage = Literal["skip", "stop"]
"""What to do about unreadable images: train without them if they are few, or stop at the first."""

_VERSION = 1
_CHUNK = 256


@dataclass(frozen=True)
class BadImage:
    """One image that cannot be read."""

    number: int
    """Its number in the source."""
    name: str
    """Its name in the source."""
    reason: str
    """Why it cannot be read."""


@dataclass(frozen=True)
class Scan:
    """Which of a source's images cannot be read."""

    images: int
    """How many images were tried."""
    bad: tuple[BadImage, ...]
    """Those that cannot be read, by number."""
    listing: Path
    """A text file with a line for each bad image: name, tab, reason. It exists only if there are any, and the cache
    can be written."""

    def summary(self) -> str:
        """One line for people."""
        if not self.bad:
            return f"all {self.images:,} images can be read"
        share = f"{len(self.bad) / self.images:.2%}"
        first = ", ".join(image.name for image in self.bad[:5])  # for when the cache cannot be written
        where = f"they are listed in {self.listing}" if self.listing.exists() else f"the first are {first}"
        return f"{len(self.bad):,} of {self.images:,} images ({share}) cannot be read; {where}"


def scan(
    source: Source,
    num_workers: int = 2,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Scan:
    """Decode every image once and list those that fail; from the cache if the same images were scanned before.

    `progress` gets (images done, images in all) now and then. Failures in a cached scan are tried again, since the file
    may have been repaired; a file damaged since then is found in training, which names it.
    """
    key = hash_of([source.fingerprint().encode(), str(getattr(source, "max_pixels", "")).encode()])
    folder = (cache or cache_folder()) / "scans"
    record = read_cached(folder / f"{key}.json")
    if isinstance(record, dict) and record.get("version") == _VERSION and record["images"] == len(source):
        numbers: Iterator[int] = iter(record["bad"])
        bad = [image for number in numbers if (image := _try(source, number))]
    else:
        bad = list(_try_all(source, num_workers, progress))
        content = {"version": _VERSION, "images": len(source), "bad": [image.number for image in bad]}
        try_write_json(folder / f"{key}.json", content)
    listing = folder / f"{key}-bad-images.txt"
    if bad:
        lines = "".join(f"{b.name}\t{b.reason}\n" for b in bad)
        try_write(listing, lines.encode("utf-8", "surrogateescape"))
    return Scan(len(source), tuple(bad), listing)


def readable(source: Source, result: Scan, policy: OnBadImage = "skip", limit: float = 0.01) -> Source:
    """The source without its unreadable images.

    The policy `skip` leaves them out, unless their share is above `limit`; `stop` allows none. Raises `DataError`
    naming the file that lists them. The remaining images are renumbered from 0.
    """
    if result.images != len(source):
        raise DataError(f"the scan tried {result.images} images, but the source holds {len(source)}. Scan it again")
    if not result.bad:
        return source
    first = f"The first is {result.bad[0].name}: {result.bad[0].reason}"
    if policy == "stop":
        raise DataError(
            f"{result.summary()}. {first}. Repair or remove them, or train without them (--on-bad-image skip)"
        )
    if len(result.bad) > limit * result.images:
        raise DataError(
            f"{result.summary()}, more than the {limit:.0%} that may be skipped. {first}. Repair or remove them"
        )
    keep = np.ones(len(source), dtype=bool)
    keep[[b.number for b in result.bad]] = False
    return SourceSubset(source, np.flatnonzero(keep).tolist())


def _try_all(source: Source, num_workers: int, progress: Callable[[int, int], None] | None) -> Iterator[BadImage]:
    """The unreadable images in order. Work is handed out in blocks, since a task for each image would be slow."""
    with ThreadPoolExecutor(max(1, num_workers)) as pool:
        block = _CHUNK * max(1, num_workers)
        for start in range(0, len(source), block):
            numbers = range(start, min(start + block, len(source)))
            for image in pool.map(lambda number: _try(source, number), numbers):
                if image is not None:
                    yield image
            if progress is not None:
                progress(numbers[-1] + 1, len(source))


def _try(source: Source, number: int) -> BadImage | None:
    try:
        source.image(number)
    except UnreadableImage as error:
        return BadImage(number, error.name, error.reason)
    return None
