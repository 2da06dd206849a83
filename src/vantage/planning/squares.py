"""Whether a plan keeps images in memory as small squares (`Data.resident_side`).

Photographs of several sizes would be decoded anew in every epoch, which takes longer than training a small network on
them. A plan decodes them once if there is time for it.
"""

import time
from dataclasses import replace
from typing import NamedTuple

from vantage.data import Source
from vantage.data.resident import fits_in_memory
from vantage.data.threads import CORES
from vantage.machine.devices import uses_cuda
from vantage.training.feed import resident_budget
from vantage.training.images import SAMPLE, usual_size
from vantage.training.run import Data, Run

__all__ = ["SizeLook", "decoding_seconds", "keep_squares", "look_at_sizes"]

_LEAST_SIDE, _TIMES_VIEW = 128, 2  # side of a square: in pixels, and relative to the side of a view
_MOST_TIME = 0.25  # share of the time that decoding may take


class SizeLook(NamedTuple):
    """The sizes of a set's images, from a sample."""

    side: int
    """Median of the short sides, in pixels."""

    one_size: bool
    """Whether all have the same size."""

    seconds: float
    """Time to decode an image, at most."""


def look_at_sizes(source: Source) -> SizeLook:
    """Decode some images, and take the time."""
    start = time.monotonic()
    side, one_size = usual_size(source)
    return SizeLook(side, one_size, (time.monotonic() - start) / min(len(source), SAMPLE))


def decoding_seconds(data: Data, images: int, look: SizeLook) -> float:
    """Time to decode this many images into memory."""
    return images * look.seconds / max(1, min(data.num_workers, CORES))


def keep_squares(run: Run, size: int, source: Source, look: SizeLook, seconds: float) -> Run:
    """The run with squares of twice the view's side, at least 128 pixels, if its images cannot stay in memory as they
    are, the squares can, and decoding takes at most a quarter of the seconds. A side that is set stays."""
    data, side = run.data, max(_LEAST_SIDE, _TIMES_VIEW * size)
    budget = resident_budget(data, "cuda" if uses_cuda(run.hardware.accelerator) else "cpu")
    as_they_are = look.one_size and fits_in_memory(source, budget=budget)
    too_slow = decoding_seconds(data, len(source), look) > _MOST_TIME * seconds
    if data.resident_side or as_they_are or too_slow or not fits_in_memory(source, side, budget):
        return run
    return replace(run, data=replace(data, resident_side=side))
