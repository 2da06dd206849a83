"""The verdict on every claim of an entry: what the seeds say, and what the paper's own numbers say of its text."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from vantage.measures.significance import interval
from vantage.studies.lab.entry import Claim, Entry, Gate
from vantage.studies.lab.judgement import FEWEST, Contrast, Judged, judge
from vantage.studies.lab.predicates import Predicate, Values

__all__ = ["VERDICTS", "Numbers", "Ruling", "held", "of_paper", "paper_says", "rule"]

Numbers = Mapping[str, Mapping[str, Mapping[int, float]]]
"""Numbers by cell, measure and seed."""

VERDICTS = ("supported", "refuted", "undecided", "void", "not run", "not asked")
"""What may become of a claim."""


@dataclass(frozen=True)
class Ruling:
    """What became of one claim."""

    claim: Claim
    """The claim."""

    verdict: str
    """One of `VERDICTS`."""

    judged: tuple[Judged, ...] = ()
    """Its contrasts; none where nothing was run."""

    reason: str = ""
    """Why it is void, undecided or not asked, where the interval does not say it."""

    paper: tuple[Contrast, ...] = ()
    """The same contrasts of the paper's own numbers, as far as it gives them."""

    against: tuple[str, ...] = ()
    """Those of them that contradict the paper's text."""


def rule(entry: Entry, numbers: Numbers) -> tuple[Ruling, ...]:
    """Every claim judged, all contrasts of the entry corrected together."""
    asked: dict[str, list[tuple[Predicate, tuple[Contrast, ...]]]] = {}
    for claim in entry.claims:
        parts = [(one, _contrasts(one, numbers, claim.by)) for one in claim.predicates if claim.by]
        if claim.by and all(contrasts for _, contrasts in parts):
            asked[claim.name] = parts
    flat = [contrast for parts in asked.values() for _, contrasts in parts for contrast in contrasts]
    judged = iter(judge(flat))
    found = {
        name: [(one, tuple(next(judged) for _ in contrasts)) for one, contrasts in parts]
        for name, parts in asked.items()
    }
    closed = _closed(entry.gate, numbers) if entry.gate else ""
    return tuple(_ruling(claim, found.get(claim.name), numbers, closed, entry) for claim in entry.claims)


def paper_says(entry: Entry, claim: Claim) -> tuple[tuple[Contrast, ...], tuple[str, ...]]:
    """The contrasts of a claim on the paper's own numbers, for every column, and those that contradict it."""
    contrasts: list[Contrast] = []
    against: list[str] = []
    papers = {cell.name: cell.paper for cell in entry.cells} if claim.columns else {}
    for column in claim.columns:
        values = of_paper(papers, column)
        for one in claim.predicates:
            if any(values(term) is None for term in one.terms):
                continue
            part = one.contrasts(values)
            contrasts += [Contrast(f"{each.name} ({column})", each.values, each.delta) for each in part]
            if one.decided(["supported" if each.holds() else "refuted" for each in part]) != "supported":
                failing = [each for each in part if not each.holds()]
                against += [f"{each.name} = {fmean(each.values):.4g} ({column})" for each in failing]
    return tuple(contrasts), tuple(against)


def _ruling(
    claim: Claim,
    parts: list[tuple[Predicate, tuple[Judged, ...]]] | None,
    numbers: Numbers,
    closed: str,
    entry: Entry,
) -> Ruling:
    paper, against = paper_says(entry, claim)
    if parts is None:
        return Ruling(claim, "not run" if claim.by else "not asked", (), claim.why, paper, against)
    judged = tuple(one for _, some in parts for one in some)
    verdicts = [predicate.decided([one.verdict for one in some]) for predicate, some in parts]
    whole = "refuted" if "refuted" in verdicts else "supported" if set(verdicts) == {"supported"} else "undecided"
    if claim.needs is not None and (lacking := _lacking(claim.needs, numbers, claim.by)):
        return Ruling(claim, "void", judged, lacking, paper, against)
    if claim.accuracy and closed:
        return Ruling(claim, "undecided", judged, closed, paper, against)
    fewest = min(one.n for one in judged)
    few = f"{fewest} of at least {FEWEST} pairs" if fewest < FEWEST else ""
    return Ruling(claim, whole, judged, few or claim.why, paper, against)


def _closed(gate: Gate, numbers: Numbers) -> str:
    """Why no claim about accuracy is decided; nothing where the base is above every floor."""
    for floor in gate.floors:
        values = _of_seeds(numbers, gate.by, (gate.base, floor))
        base, low = values(gate.base), values(floor)
        if not base or not low:
            return f"the gate is not measured: {gate.base} against {floor}"
        gaps = [a - b for a, b in zip(base, low, strict=True)]
        if len(gaps) < FEWEST:
            return f"{len(gaps)} of at least {FEWEST} pairs for the gate"
        if interval(gaps)[0] <= 0:
            return f"gate: {gate.base} is not above {floor} ({fmean(gaps):+.2f} points of {gate.by})"
    return ""


def _lacking(needs: Predicate, numbers: Numbers, by: str) -> str:
    contrasts = _contrasts(needs, numbers, by)
    if not contrasts:
        return "what it presupposes was not measured"
    low = [one for one in contrasts if interval(one.values)[0] <= 0]
    return f"void, since {low[0].name} is not above 0" if low else ""


def _contrasts(predicate: Predicate, numbers: Numbers, by: str) -> tuple[Contrast, ...]:
    """None where cells or seeds are missing."""
    values = _of_seeds(numbers, by, predicate.terms)
    if any(not values(term) for term in predicate.terms):
        return ()
    return predicate.contrasts(values)


def _of_seeds(numbers: Numbers, by: str, terms: tuple[str, ...]) -> Values:
    """The numbers of terms for the seeds that all of them have, in order of the seeds."""
    seeds = sorted(set.intersection(*(set(held(numbers, by, term)) for term in terms)))

    def values(term: str) -> tuple[float, ...] | None:
        row = held(numbers, by, term)
        return tuple(row[seed] for seed in seeds) if row else None

    return values


def held(numbers: Numbers, by: str, term: str) -> Mapping[int, float]:
    """The numbers of a term by seed: of the measure that it names, or of `by`."""
    cell, _, measure = term.partition(" @ ")
    return numbers.get(cell, {}).get(measure or by, {})


def of_paper(papers: Mapping[str, Mapping[str, float]], column: str) -> Values:
    """The paper's numbers of terms: of the column that a term names, or of this one."""

    def values(term: str) -> tuple[float, ...] | None:
        cell, _, other = term.partition(" @ ")
        number = papers[cell].get(other or column)
        return None if number is None else (number,)

    return values
