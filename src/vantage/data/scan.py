"""Find the images that cannot be read before a run meets them.

Every image is decoded once, as training would decode it, in several threads (the decoders release the interpreter's
lock). The result is cached under the source's fingerprint, so the same images are scanned once.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from vantage.data.sources.source import Source
from vantage.data.sources.subset import SourceSubset
from vantage.errors import DataError, UnreadableImage, one_line
from vantage.processes.sharing import own_parts, parts_in_order, same_on_all, true_on_all, value_of_first
from vantage.storage.cache import cache_folder, hash_of, read_cached, try_write, try_write_json

OnBadImage = Literal["skip", "stop"]
"""What to do about unreadable images: train without them if they are few, or stop at the first."""

_VERSION = 1
_CHUNK = 256
_A_FEW = 3
"""So many unreadable images are skipped however small the set is: one among forty photographs is an accident."""


_USED: set[Path] = set()
"""Cached scans by which this process took images for readable."""


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
        return f"{self.count()}: {self.names()}" if self.bad else self.count()

    def count(self) -> str:
        """How many images cannot be read, in words."""
        if not self.bad:
            return f"all {self.images:,} images can be read" if self.images > 1 else "the only image can be read"
        return f"{len(self.bad):,} of {self.images:,} images ({len(self.bad) / self.images:.2%}) cannot be read"

    def names(self) -> str:
        """The first images that cannot be read, and the file that lists all of them."""
        names = [one_line(image.name) for image in self.bad[:_A_FEW]]
        more = f" and {len(self.bad) - len(names):,} more" if len(self.bad) > len(names) else ""
        where = f"; reasons are in {self.listing}" if self.listing.exists() else ""  # not if the cache is read-only
        return f"{', '.join(names)}{more}{where}"


def scan(
    source: Source,
    num_workers: int = 2,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    together: bool = False,
) -> Scan:
    """Decode every image once and list those that fail; from the cache if the same images were scanned before.

    `progress` gets (images done, images in all) now and then. Failures in a cached scan are tried again, since the file
    may have been repaired; a file damaged since then is found when it is used, and `forget_scans` helps. With
    `together`, all processes of the run call this at the same time and share the images, unless every one has them in
    its cache.
    """
    key = hash_of([source.fingerprint(), str(getattr(source, "max_pixels", ""))])
    folder = (cache or cache_folder()) / "scans"
    record = read_cached(folder / f"{key}.json")
    is_cached = isinstance(record, dict) and record.get("version") == _VERSION and record["images"] == len(source)
    together = together and same_on_all(len(source))
    if together:
        is_cached = true_on_all(is_cached)
    own: dict[int, BadImage] = {}  # those that this process met, and need not try again
    numbers = record["bad"] if is_cached else _bad_numbers(source, num_workers, progress, together, own)
    bad = [image for number in numbers if (image := own.get(number) or _try(source, number))]
    _USED.add(folder / f"{key}.json")
    if not is_cached:
        content = {"version": _VERSION, "images": len(source), "bad": [image.number for image in bad]}
        try_write_json(folder / f"{key}.json", content)
    listing = folder / f"{key}-bad-images.txt"
    if bad:
        lines = "".join(f"{one_line(b.name)}\t{one_line(b.reason)}\n" for b in bad)
        try_write(listing, lines.encode("utf-8", "surrogateescape"))
    return Scan(len(source), tuple(bad), listing)


def forget_scans() -> bool:
    """Remove the cached scans that this process relied on, since an image that could be read then cannot be read now:
    the next scan tries all images. Returns whether there were any."""
    had_some = bool(_USED)
    while _USED:
        with suppress(OSError):
            _USED.pop().unlink()
    return had_some


def readable(source: Source, result: Scan, policy: OnBadImage = "skip", limit: float = 0.01) -> Source:
    """The source without its unreadable images.

    The policy `skip` leaves them out, unless they are more than three and their share is above `limit`, or no image is
    left; `stop` allows none. Raises `DataError` naming the first and the file that lists them. The remaining images are
    renumbered from 0.
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
    if len(result.bad) == result.images:
        raise DataError(f"{result.summary()}. {first}. Repair them, or name other images")
    if too_many(len(result.bad), result.images, limit):
        most = f"{limit:.0%}" if limit * result.images > _A_FEW else f"{_A_FEW}"
        raise DataError(
            f"{result.count()}, more than the {most} that may be skipped: {result.names()}. {first}. Repair or remove"
            " them"
        )
    keep = np.ones(len(source), dtype=bool)
    keep[[b.number for b in result.bad]] = False
    return SourceSubset(source, torch.from_numpy(np.flatnonzero(keep)))


def too_many(bad: int, images: int, limit: float = 0.01) -> bool:
    """Whether so many unreadable images are more than may be skipped: more than three, and more than this share."""
    return bad > max(limit * images, _A_FEW)


def _bad_numbers(
    source: Source,
    num_workers: int,
    progress: Callable[[int, int], None] | None,
    together: bool,
    own: dict[int, BadImage],
) -> Iterator[int]:
    """The numbers of the unreadable images, in order; `own` receives those that this process met. Work is handed
    out in blocks, since a task for each image would be slow."""
    size = _CHUNK * max(1, value_of_first(num_workers) if together else num_workers)  # alike on all
    blocks = [range(start, min(start + size, len(source))) for start in range(0, len(source), size)]
    with ThreadPoolExecutor(max(1, num_workers)) as pool:

        def bad_in(block: range) -> Tensor:
            bad = [image for image in pool.map(lambda number: _try(source, number), block) if image]
            own.update({image.number: image for image in bad})
            return torch.tensor([image.number for image in bad], dtype=torch.int64)

        parts = map(bad_in, own_parts(blocks) if together else blocks)
        parts = parts_in_order(parts, len(blocks), (), torch.int64) if together else parts
        for block, part in zip(blocks, parts, strict=True):
            yield from part.tolist()
            if progress is not None:
                progress(block[-1] + 1, len(source))


def _try(source: Source, number: int) -> BadImage | None:
    try:
        source.image(number)
    except UnreadableImage as error:
        return BadImage(number, error.name, error.reason)
    return None
