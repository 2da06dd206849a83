"""Student's t: tests, paired or Welch's, of whether two samples differ by more than their spread, and intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, mean, stdev, variance

__all__ = ["FEWEST_TESTED", "Difference", "difference", "has_no_spread", "holm", "interval", "quantile", "two_sided"]

FEWEST_TESTED = 3
"""Fewest numbers in a sample that is tested: fewer say too little about their spread."""


@dataclass(frozen=True)
class Difference:
    """How two samples differ."""

    mean: float
    """Mean of the first minus mean of the second."""
    p: float
    """Two-sided probability of a difference at least this large if the true means are equal."""
    test: str
    """"paired t" or "Welch's t"."""
    n: tuple[int, int]
    """Sizes of the two samples."""


def difference(first: Sequence[float], second: Sequence[float], paired: bool) -> Difference | None:
    """How `first` differs from `second`, pair by pair if they are paired; None for samples of fewer than three numbers
    or without any spread, which cannot be tested."""
    n = (len(first), len(second))
    if min(n) < FEWEST_TESTED:
        return None
    shift = mean(first) - mean(second)
    gaps = [a - b for a, b in zip(first, second, strict=True)] if paired else []
    if has_no_spread(gaps) if paired else has_no_spread(first) and has_no_spread(second):
        return None
    if paired:
        error, freedom = variance(gaps) / len(gaps), len(gaps) - 1.0
    else:
        parts = [variance(row) / len(row) for row in (first, second)]
        error = sum(parts)
        below = sum(part**2 / (len(row) - 1) for part, row in zip(parts, (first, second), strict=True))
        freedom = error**2 / below
    return Difference(shift, two_sided(shift / math.sqrt(error), freedom), "paired t" if paired else "Welch's t", n)


def has_no_spread(values: Sequence[float]) -> bool:
    """Whether two values or more are equal but for rounding."""
    return stdev(values) / math.sqrt(len(values)) <= 1e-12 * max(1.0, abs(fmean(values)))


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Student's t interval of a mean; (−inf, inf) for fewer than two numbers, the mean alone for numbers that differ by
    rounding only."""
    if len(values) < 2:
        return -math.inf, math.inf
    if has_no_spread(values):
        return fmean(values), fmean(values)
    half = quantile(0.5 + level / 2, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def quantile(share: float, freedom: float | int) -> float:
    """The number that Student's t with `freedom` degrees of freedom is below with probability `share`."""
    from scipy.special import stdtrit  # slow to import

    return float(stdtrit(freedom, share))


def two_sided(t: float, freedom: float) -> float:
    """Probability that Student's t with `freedom` degrees of freedom is at least as far from 0 as `t` is."""
    from scipy.special import stdtr  # slow to import, so only when there is something to test

    return min(1.0, 2.0 * float(stdtr(freedom, -abs(t))))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction for several comparisons: each p times the number of p that are not smaller, made monotone, at
    most 1."""
    order = sorted(range(len(p)), key=lambda number: p[number])
    adjusted_p, least = [0.0] * len(p), 0.0
    for rank, number in enumerate(order):
        least = max(least, min(1.0, (len(p) - rank) * p[number]))
        adjusted_p[number] = least
    return adjusted_p
