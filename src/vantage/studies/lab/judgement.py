"""What six seeds can say: paired differences with their interval, equivalence, exact sign flips, and a verdict.

n: seeds
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean, stdev

from vantage.errors import UserError
from vantage.measures.significance import holm, interval, two_sided

__all__ = ["FEWEST", "LEVEL", "Contrast", "Judged", "judge", "sign_flip"]

LEVEL = 0.05
"""Probability below which a claim counts as decided, after Holm's correction over its entry."""

FEWEST = 5
"""Pairs below which nothing is decided: a sign-flip test of four pairs cannot go below p = .125."""

_MOST_FLIPS = 2**16
"""Sign patterns that are counted; above, the sign-flip p is left out."""


@dataclass(frozen=True)
class Contrast:
    """One number of each seed that a claim is about: above 0, or within ±δ of it."""

    name: str
    """In words, such as "JCL − MoCo v2"."""

    values: tuple[float, ...]
    """One for each seed that has all the cells that it needs. Of a paper it is one number."""

    delta: float = 0.0
    """δ; 0 asks whether the numbers lie above 0."""

    def __post_init__(self) -> None:
        if self.delta < 0 or not all(math.isfinite(value) for value in self.values):
            raise UserError(f"{self.name}: δ is {self.delta} and the differences are {self.values}; give finite ones")

    def holds(self) -> bool:
        """Whether the mean is where the claim puts it: all that single numbers of a paper can say."""
        mean = fmean(self.values)
        return abs(mean) <= self.delta + 1e-9 if self.delta else mean > 1e-9


@dataclass(frozen=True)
class Judged:
    """What the seeds say of one contrast."""

    name: str
    """The contrast in words."""

    n: int
    """Pairs."""

    mean: float
    """Their mean."""

    low: float
    """Lower end of the 95 % t interval; −inf for fewer than two pairs."""

    high: float
    """Its upper end."""

    p: float
    """Two-sided t, or the larger of the two one-sided p of an equivalence; after Holm's correction."""

    flips: float | None
    """Exact p of the same question by sign flips, not corrected; none where there are too few or too many pairs."""

    verdict: str
    """supported, refuted or undecided."""


def sign_flip(values: Sequence[float]) -> float | None:
    """Exact two-sided p: the share of the 2ⁿ patterns of signs whose mean is at least as far from 0 as the one seen.

    None without values, and where they are too many for the patterns to be counted.
    """
    return _share(values, abs) if values and 2 ** len(values) <= _MOST_FLIPS else None


def judge(contrasts: Sequence[Contrast]) -> list[Judged]:
    """Every contrast of an entry, corrected together: "above 0" by the paired t of its values, "within ±δ" by two
    one-sided tests (inside) or by the t of what lies beyond δ (outside). Fewer than five pairs, and numbers without
    any spread, decide nothing."""
    sure = [_tested(one) for one in contrasts]
    places = [number for number, (p, _) in enumerate(sure) if p is not None]
    corrected = dict(zip(places, holm([p for p, _ in sure if p is not None]), strict=True))
    judged = []
    for number, (one, (_, leans)) in enumerate(zip(contrasts, sure, strict=True)):
        p, decided = corrected.get(number, 1.0), len(one.values) >= FEWEST
        verdict = ("supported" if leans else "refuted") if decided and p < LEVEL else "undecided"
        low, high = interval(one.values)
        mean = fmean(one.values) if one.values else math.nan
        judged.append(Judged(one.name, len(one.values), mean, low, high, p, _flips(one), verdict))
    return judged


def _tested(one: Contrast) -> tuple[float | None, bool]:
    """The p of what the values lean to, and whether that is the claim; none where the values have no spread."""
    if len(one.values) < 2:
        return None, False
    mean, error = fmean(one.values), stdev(one.values) / math.sqrt(len(one.values))
    if error <= 1e-12 * max(1.0, abs(mean)):
        return None, False
    free = len(one.values) - 1.0
    if not one.delta:
        return two_sided(mean / error, free), mean > 0
    beyond = (abs(mean) - one.delta) / error
    outside = two_sided(beyond, free)
    return (outside, False) if beyond > 0 else (outside / 2, True)  # the farther bound has the smaller p


def _flips(one: Contrast) -> float | None:
    if not one.delta or not one.values:
        return sign_flip(one.values)
    mean = fmean(one.values)
    beyond = [value - math.copysign(one.delta, mean) for value in one.values]
    if abs(mean) > one.delta or 2 ** len(beyond) > _MOST_FLIPS:
        return sign_flip(beyond)
    side = math.copysign(1.0, sum(beyond))
    return _share(beyond, lambda total: side * total)


def _share(values: Sequence[float], far: Callable[[float], float]) -> float:
    """Share of all patterns of signs whose sum is at least as far out as the one seen."""
    seen = far(sum(values))
    patterns = product((1, -1), repeat=len(values))
    sums = [far(sum(sign * value for sign, value in zip(signs, values, strict=True))) for signs in patterns]
    return sum(total >= seen - 1e-12 * max(1.0, abs(seen)) for total in sums) / len(sums)
