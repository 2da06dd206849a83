"""Claims in words, for tables: what the paper has, what we have, the verdict and its reasons."""

import math
from statistics import fmean

from vantage.errors import quantity
from vantage.studies.lab.entry import Reason
from vantage.studies.lab.judging.contrasts import ContrastResult
from vantage.studies.lab.verdicts import ClaimVerdict

__all__ = [
    "DECIDED",
    "difference_in_words",
    "is_below_paper",
    "least_certain",
    "ours_in_words",
    "paper_in_words",
    "paper_numbers",
    "runs_in_words",
    "verdict_in_words",
    "verdict_word",
]

DECIDED = ("supported", "refuted")
"""The verdicts that decide a claim."""

_MEASURES = {"linear-cached": "linear", "knn": "kNN"}
"""Names of measures in words, where they differ."""

_MOST_DECIMALS = 6
"""Numbers that would need this many decimals are written as powers of ten."""

_MOST = 3
"""How many contrasts of the paper's numbers fit on a line; of our own only the least certain one is shown."""


def verdict_in_words(one: ClaimVerdict, said: dict[str, str] | None = None) -> str:
    """The verdict on a claim, what it rests on, and, if it is refuted, the reasons. What `said` holds, by the claim
    that said it first, is referred to; what is new is added to it."""
    said = {} if said is None else said
    word = verdict_word(one)
    words = [part for part in (one.reason, *map(_reason, one.reasons)) if part]
    new = [part for part in words if part not in said]
    earlier = dict.fromkeys(said[part] for part in words if part in said)
    for part in new:
        said[part] = one.claim.name
    referred = [f"as for claim {name}" if name != one.claim.name else "as on the left" for name in earlier]
    parts = [ours_in_words(one)] * bool(one.results) + new + referred
    return ": ".join((word, "; ".join(parts))) if parts else word


def verdict_word(one: ClaimVerdict) -> str:
    """The verdict, in bold if it decides the claim."""
    return f"**{one.verdict}**" if one.verdict in DECIDED else one.verdict


def paper_in_words(one: ClaimVerdict) -> str:
    """The contrasts of a claim in the paper's numbers, and those that contradict its text."""
    if not one.paper:
        return "no numbers"
    if len(one.paper) <= _MOST:
        words = "; ".join(f"{each.name}: {_format_signed(fmean(each.values))}" for each in one.paper)
    else:
        values = [fmean(each.values) for each in one.paper]
        words = f"{len(values)} differences, {_format_signed(min(values))} to {_format_signed(max(values))}"
    return (
        words
        + "".join(f"; ✗ {each}" for each in one.contradictions[:_MOST])
        + (" …" if len(one.contradictions) > _MOST else "")
    )


def runs_in_words(one: ClaimVerdict) -> str:
    """What was computed for a claim, without the numbers: for the smoke level, which judges nothing."""
    if not one.results:
        return one.verdict
    differences, seeds = len(one.results), min(each.n for each in one.results)
    return f"{quantity(differences, 'difference')} computed, {quantity(seeds, 'seed')}"


def _reason(reason: tuple[Reason, ContrastResult | None]) -> str:
    what, shown = reason
    words = f"{'ruled out' if what.ruled_out else 'why'}: {what.text}"
    if shown is None:
        return words
    measure = _measure(shown, what.measure)
    return f"{words} ({shown.name}: {_mean_and_interval(shown)}{', ' * bool(measure)}{measure})"


def _measure(contrast: ContrastResult, measure: str) -> str:
    """A measure in words; empty for a contrast that names its own."""
    return "" if " @ " in contrast.name else _MEASURES.get(measure, measure)


def ours_in_words(one: ClaimVerdict) -> str:
    """The contrast that decides a claim: the least certain one of those with its verdict, if there are any."""
    if not one.results:
        return "–"
    least = least_certain(one)
    more = f"; the least certain of {len(one.results)}" if len(one.results) > 1 else ""
    measure = _measure(least, one.claim.measure)
    return f"{_words(least)} ({measure}{more})" if measure else _words(least) + more


def difference_in_words(one: ClaimVerdict) -> str:
    """The same contrast with its interval and its measure, without its test."""
    least = least_certain(one)
    measure = _measure(least, one.claim.measure)
    return f"{least.name}: {_mean_and_interval(least)}{f' ({measure})' * bool(measure)}"


def paper_numbers(one: ClaimVerdict) -> tuple[float, ...]:
    """What the paper has for the difference that is shown here, in points; none for a claim that is not about accuracy,
    since units may differ."""
    least = least_certain(one)
    same = [each.values for each in one.paper if each.name.startswith(f"{least.name} (")]
    return sum(same, ()) if one.claim.accuracy and least.is_difference else ()


def is_below_paper(one: ClaimVerdict) -> bool | None:
    """Whether the difference that is shown is smaller than in the paper: its interval ends below the smallest of the
    paper's numbers. None if there are none."""
    numbers = paper_numbers(one)
    return least_certain(one).high < min(numbers) if numbers else None


def least_certain(one: ClaimVerdict) -> ContrastResult:
    """The contrast that decides a claim with results: of those with its verdict, if there are any, or else of those
    that come first in the order refuted, undecided, supported, the one with the largest p."""
    order = ("refuted", "undecided", "supported")
    return min(one.results, key=lambda each: (each.verdict != one.verdict, order.index(each.verdict), -each.p))


def _words(one: ContrastResult) -> str:
    """A difference and its test. With one pair or equal ones there is no t test; sign flips may then still give a p."""
    flips = "" if one.flips is None else f", flips {_probability(one.flips)}"
    tested = f", p {_probability(one.p)}{flips}" if one.p < 1 or (one.n > 1 and not one.constant) else ""
    return f"{one.name}: {_mean_and_interval(one)}, n {one.n}{tested}"


def _probability(p: float) -> str:
    """Two significant digits, down to the smallest value that a reader compares with a level."""
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def _mean_and_interval(one: ContrastResult) -> str:
    """A mean and its interval with as many decimals as give half the interval two significant digits."""
    if one.constant:
        return f"{_format_signed(one.mean)}, equal in all seeds"
    if math.isinf(one.low):
        return _format_signed(one.mean)
    form = _form((one.high - one.low) / 2)
    mean, low, high = (f"{value:{form}}" for value in (one.mean, one.low, one.high))
    return f"{mean} [{low}, {high}]"


def _form(half: float) -> str:
    """The format of numbers whose uncertainty is `half`."""
    decimals = 1 - math.floor(math.log10(half)) if half > 0 else 3
    return f"+z,.{max(0, decimals)}f" if decimals < _MOST_DECIMALS else "+.1e"


def _format_signed(value: float) -> str:
    """Three significant digits; a difference that is only rounding error counts as 0."""
    value = 0.0 if abs(value) < 1e-12 else value
    return f"{value:+.3g}" if abs(value) < 1_000 else f"{value:+,.0f}"
