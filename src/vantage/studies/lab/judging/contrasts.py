"""Statistics for a handful of seeds: paired differences with intervals, equivalence, sign flips, and a verdict."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from vantage.errors import UserError
from vantage.measures.significance import has_no_spread, holm, interval, two_sided

__all__ = ["FEWEST", "SeedContrast", "ContrastResult", "judge_contrasts", "level", "sign_flip"]

_LOOK = 6
"""Pairs of a study as planned. Every six more are another look: seeds are added after the others have been judged."""

FEWEST = 5
"""Pairs below which nothing is decided. Sign flips of five pairs, which are shown beside the t test, cannot go below
p = .0625: only six or more pairs can be decided by both."""

_LEVELS = (0.05, 0.0294, 0.0221, 0.0182, 0.0158)
"""The level of each look at the data if there are one to five of them (Pocock, Biometrika 64, 1977)."""
_MOST_FLIPS = 2**16
"""Most sign patterns that are enumerated; with more, the sign-flip p is left out."""


@dataclass(frozen=True)
class SeedContrast:
    """Numbers, one for each seed, that a claim expects above 0, or within ±δ of 0."""

    name: str
    """In words, such as "JCL − MoCo v2"."""

    values: tuple[float, ...]
    """A value for each seed for which all the necessary cells exist; for a paper, a single value."""

    delta: float = 0.0
    """δ; 0 asks whether the numbers lie above 0."""

    bounded: bool = False
    """Whether the numbers have a largest value at which seeds may well agree, such as a rank correlation. Without any
    spread the sign flips then decide, since there is no t test."""

    def __post_init__(self) -> None:
        if self.delta < 0 or not all(math.isfinite(value) for value in self.values):
            raise UserError(f"{self.name}: δ is {self.delta} and the differences are {self.values}; give finite ones")

    def holds(self) -> bool:
        """Whether the mean lies where the claim expects it; a paper's single numbers allow no test beyond that."""
        mean = fmean(self.values)
        return abs(mean) <= self.delta + 1e-9 if self.delta else mean > 1e-9


@dataclass(frozen=True)
class ContrastResult:
    """The statistical test of one contrast."""

    name: str
    """The contrast in words."""

    n: int
    """Number of pairs."""

    mean: float
    """Mean of the contrast."""

    low: float
    """Lower end of the 95 % t interval; −inf for fewer than two pairs."""

    high: float
    """Its upper end."""

    p: float
    """p after Holm's correction: of the two-sided t test or, for an equivalence, the larger of two one-sided p."""

    flips: float | None
    """Exact p of the same test by sign flips, uncorrected; None if there are too few or too many pairs."""

    verdict: str
    """supported, refuted or undecided."""

    constant: bool = False
    """Whether all of several pairs have the same value, so that no t test is possible."""

    is_difference: bool = True
    """Whether the mean is a difference that is expected above 0: not one within ±δ, and no correlation."""


def level(pairs: int) -> float:
    """Probability below which a claim counts as decided, after Holm's correction over its entry: .05 for up to six
    pairs and, for more, the level of each of several looks at the data, one for every six pairs. More than five looks
    have the level of five."""
    looks = max(1, math.ceil(pairs / _LOOK))
    return _LEVELS[min(looks, len(_LEVELS)) - 1]


def sign_flip(values: Sequence[float]) -> float | None:
    """Exact two-sided p: the share of the 2ⁿ sign patterns whose mean is at least as far from 0 as the observed one.

    None if there are no values, or too many of them to enumerate the patterns.
    """
    return _share(values, abs) if values and 2 ** len(values) <= _MOST_FLIPS else None


def judge_contrasts(contrasts: Sequence[SeedContrast]) -> list[ContrastResult]:
    """Test all contrasts of an entry, with one correction: "above 0" by a paired t test, "within ±δ" by two one-sided
    tests (inside) or by a t test of the excess over δ (outside). Fewer than five pairs, or values without any spread
    (unless they are bounded), decide nothing. The same numbers asked by several claims are corrected for once."""
    tests = {_question(one): _t_test(one) for one in contrasts}
    places = [question for question, (p, _) in tests.items() if p is not None]
    corrected_p = dict(zip(places, holm([p for p, _ in tests.values() if p is not None]), strict=True))
    results = []
    for one in contrasts:
        _, favors_claim = tests[_question(one)]
        p, pairs = corrected_p.get(_question(one), 1.0), len(one.values)
        decided = pairs >= FEWEST and p < level(pairs)
        verdict = ("supported" if favors_claim else "refuted") if decided else "undecided"
        low, high = interval(one.values)
        mean = fmean(one.values) if one.values else math.nan
        constant = len(one.values) > 1 and has_no_spread(one.values)
        plain = not one.delta and not one.bounded
        results.append(ContrastResult(one.name, pairs, mean, low, high, p, _flips(one), verdict, constant, plain))
    return results


def _question(contrast: SeedContrast) -> SeedContrast:
    """What is asked, whatever it is called."""
    return replace(contrast, name="")


def _t_test(contrast: SeedContrast) -> tuple[float | None, bool]:
    """The p for the direction that the values favor, and whether the claim has this direction; None without spread."""
    if len(contrast.values) < 2:
        return None, False
    mean, error = fmean(contrast.values), stdev(contrast.values) / math.sqrt(len(contrast.values))
    if has_no_spread(contrast.values):
        return (sign_flip(contrast.values), mean > 0) if contrast.bounded and mean else (None, False)
    free = len(contrast.values) - 1.0
    if not contrast.delta:
        return two_sided(mean / error, free), mean > 0
    beyond = (abs(mean) - contrast.delta) / error
    outside = two_sided(beyond, free)
    return (outside, False) if beyond > 0 else (outside / 2, True)  # the farther bound has the smaller p


def _flips(contrast: SeedContrast) -> float | None:
    if not contrast.delta or not contrast.values:
        return sign_flip(contrast.values)
    mean = fmean(contrast.values)
    beyond = [value - math.copysign(contrast.delta, mean) for value in contrast.values]
    if abs(mean) > contrast.delta or 2 ** len(beyond) > _MOST_FLIPS:
        return sign_flip(beyond)
    side = math.copysign(1.0, sum(beyond))
    return _share(beyond, lambda total: side * total)


def _share(values: Sequence[float], far: Callable[[float], float]) -> float:
    """Share of all sign patterns whose sum is at least as extreme as the observed one."""
    actual, sums = far(sum(values)), [0.0]
    for value in values:  # each doubles the sums, so that no pattern is added up from its start
        sums = [total + signed for total in sums for signed in (value, -value)]
    return sum(far(total) >= actual - 1e-12 * max(1.0, abs(actual)) for total in sums) / len(sums)
