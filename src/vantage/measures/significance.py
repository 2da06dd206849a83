"""Whether two rows of numbers differ by more than their spread: Student's t, paired or Welch's."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, variance

__all__ = ["FEWEST", "Difference", "difference", "holm", "two_sided"]

FEWEST = 3
"""Fewer numbers than this on a side say nothing about spread here."""


@dataclass(frozen=True)
class Difference:
    """How two rows of numbers differ."""

    mean: float
    """Mean of the first less mean of the second."""
    p: float
    """Two-sided probability of such a difference or a larger one where there is none."""
    test: str
    """"paired t" or "Welch's t"."""
    n: tuple[int, int]
    """How many numbers on each side."""


def difference(first: Sequence[float], second: Sequence[float], paired: bool) -> Difference | None:
    """How `first` differs from `second`, number by number where they are paired; none for fewer than three numbers on
    a side, or numbers without spread, of which nothing can be said."""
    n = (len(first), len(second))
    if min(n) < FEWEST:
        return None
    gap = mean(first) - mean(second)
    if paired:
        each = [a - b for a, b in zip(first, second, strict=True)]
        error, freedom = variance(each) / len(each), len(each) - 1.0
    else:
        parts = [variance(row) / len(row) for row in (first, second)]
        error = sum(parts)
        below = sum(part**2 / (len(row) - 1) for part, row in zip(parts, (first, second), strict=True))
        freedom = error**2 / below if below > 0 else 0.0
    if not error > 0 or not freedom > 0:
        return None
    return Difference(gap, two_sided(gap / math.sqrt(error), freedom), "paired t" if paired else "Welch's t", n)


def two_sided(t: float, freedom: float) -> float:
    """Probability that Student's t with `freedom` degrees of freedom is at least as far from 0 as `t`."""
    from scipy.special import stdtr  # slow to import: only when something is tested

    return min(1.0, 2.0 * float(stdtr(freedom, -abs(t))))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction for several comparisons: each p times how many are not smaller, never falling, at most 1."""
    order = sorted(range(len(p)), key=lambda number: p[number])
    corrected, least = [0.0] * len(p), 0.0
    for rank, number in enumerate(order):
        least = max(least, min(1.0, (len(p) - rank) * p[number]))
        corrected[number] = least
    return corrected
