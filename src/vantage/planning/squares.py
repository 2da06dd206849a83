"""Whether a plan keeps images in memory as small squares (`Data.resident_side`).

Photographs of several sizes would be decoded anew in every epoch, which takes longer than training a small network on
them. A plan decodes them once if there is time for it. Views of small squares also take less time: on squares of 64
pixels, a plan's views of 32 pixels see 13 % more photographs of 128 pixels in the same time, and a network trained so
is no worse on held-out ones (`benchmarks/choices.py`). Photographs that must be decoded at length get no squares below
128 pixels: views of 32 and 64 pixels, of which a plan tries both, share these.
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

    common: tuple[int, int] | None
    """Height and width, if all have the same size."""

    seconds: float
    """Time to decode an image, at most."""


def look_at_sizes(source: Source) -> SizeLook:
    """Decode some images, and take the time."""
    start = time.monotonic()
    side, common = usual_size(source)
    return SizeLook(side, common, (time.monotonic() - start) / min(len(source), SAMPLE))


def decoding_seconds(data: Data, images: int, look: SizeLook) -> float:
    """Time to decode this many images into memory."""
    return images * look.seconds / max(1, min(data.num_workers, CORES))


def keep_squares(run: Run, size: int, source: Source, look: SizeLook, seconds: float) -> Run:
    """The run with squares of twice the view's side, at least 128 pixels, if its images cannot stay in memory as they
    are, the squares can, and decoding takes at most a quarter of the seconds. Squares of one size that can stay in
    memory become squares of twice the view's side if they are larger. A side that is set stays."""
    data, side = run.data, _TIMES_VIEW * size
    budget = resident_budget(data, "cuda" if uses_cuda(run.hardware.accelerator) else "cpu")
    can_stay = look.common is not None and fits_in_memory(source, budget=budget)
    if can_stay and (look.side <= side or look.common != (look.side, look.side)):
        return run
    side = side if can_stay else max(_LEAST_SIDE, side)
    too_slow = decoding_seconds(data, len(source), look) > _MOST_TIME * seconds
    if data.resident_side or too_slow or not fits_in_memory(source, side, budget):
        return run
    return replace(run, data=replace(data, resident_side=side))
