"""The verdict on every claim of an entry, from our seeds, and whether the paper's own numbers support its text."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median

from vantage.measures.significance import interval
from vantage.studies.lab.entry import Claim, Entry, Gate, Reason
from vantage.studies.lab.judging.contrasts import FEWEST, ContrastResult, SeedContrast, judge_contrasts
from vantage.studies.lab.judging.predicates import Predicate, Values

__all__ = [
    "SPREAD",
    "VERDICTS",
    "Numbers",
    "ClaimVerdict",
    "numbers_of",
    "paper_values",
    "paper_contrasts",
    "judge_claims",
]

Numbers = Mapping[str, Mapping[str, Mapping[int, float]]]
"""Numbers by cell, measure and seed."""

SPREAD = ", SD"
"""Suffix of a measure's name that stands for the spread of the measure over the seeds, as in the papers' columns."""

VERDICTS = ("supported", "refuted", "undecided", "void", "not run", "not asked")
"""The possible verdicts on a claim."""


@dataclass(frozen=True)
class ClaimVerdict:
    """The verdict on one claim, and what it rests on."""

    claim: Claim
    """The claim."""

    verdict: str
    """One of `VERDICTS`."""

    results: tuple[ContrastResult, ...] = ()
    """The test of each contrast; none if nothing was run."""

    reason: str = ""
    """Why it is void, undecided or not asked, if the interval does not show it."""

    paper: tuple[SeedContrast, ...] = ()
    """The same contrasts in the paper's own numbers, as far as the paper gives them."""

    contradictions: tuple[str, ...] = ()
    """The contrasts in the paper's numbers that contradict its text."""

    reasons: tuple[tuple[Reason, ContrastResult | None], ...] = ()
    """For a refuted claim: the reasons that its numbers show, each with the contrast that shows it, tested alone."""


def judge_claims(entry: Entry, numbers: Numbers) -> tuple[ClaimVerdict, ...]:
    """The verdict on every claim, with one correction over all contrasts of the entry."""
    predicates: dict[str, list[tuple[Predicate, tuple[SeedContrast, ...]]]] = {}
    for claim in entry.claims:
        parts = [(one, _contrasts(one, numbers, claim.measure)) for one in claim.predicates if claim.measure]
        if claim.measure and all(contrasts for _, contrasts in parts):
            predicates[claim.name] = parts
    flat = [contrast for parts in predicates.values() for _, contrasts in parts for contrast in contrasts]
    results = iter(judge_contrasts(flat))
    results_by_claim = {
        name: [(one, tuple(next(results) for _ in contrasts)) for one, contrasts in parts]
        for name, parts in predicates.items()
    }
    return tuple(_claim_verdict(claim, results_by_claim.get(claim.name), numbers, entry) for claim in entry.claims)


def paper_contrasts(entry: Entry, claim: Claim) -> tuple[tuple[SeedContrast, ...], tuple[str, ...]]:
    """The contrasts of a claim in the paper's own numbers, for every column, and those that contradict the claim."""
    contrasts: list[SeedContrast] = []
    contradictions: list[str] = []
    papers = {cell.name: cell.paper for cell in entry.cells} if claim.columns else {}
    for column in claim.columns:
        values = paper_values(papers, column)
        for one in claim.predicates:
            if any(values(term) is None for term in one.terms):
                continue
            part = one.contrasts(values)
            contrasts += [SeedContrast(f"{each.name} ({column})", each.values, each.delta) for each in part]
            if one.overall_verdict(["supported" if each.holds() else "refuted" for each in part]) != "supported":
                failing = [each for each in part if not each.holds()]
                contradictions += [f"{each.name} = {fmean(each.values):.4g} ({column})" for each in failing]
    return tuple(contrasts), tuple(contradictions)


def _claim_verdict(
    claim: Claim,
    parts: list[tuple[Predicate, tuple[ContrastResult, ...]]] | None,
    numbers: Numbers,
    entry: Entry,
) -> ClaimVerdict:
    paper, contradictions = paper_contrasts(entry, claim)
    if parts is None:
        return ClaimVerdict(claim, "not run" if claim.measure else "not asked", (), claim.note, paper, contradictions)
    results = tuple(one for _, some in parts for one in some)
    verdicts = [predicate.overall_verdict([one.verdict for one in some]) for predicate, some in parts]
    whole = "refuted" if "refuted" in verdicts else "supported" if set(verdicts) == {"supported"} else "undecided"
    if claim.precondition is not None:
        void, reason = _missing_precondition(claim.precondition, numbers, claim.measure)
        if reason:
            return ClaimVerdict(claim, "void" if void else "undecided", results, reason, paper, contradictions)
    if claim.accuracy and (gate_reason := _closed_gate(claim.gates or (entry.gate,), numbers)):
        return ClaimVerdict(claim, "undecided", results, gate_reason, paper, contradictions)
    fewest = min(one.n for one in results)
    few = f"{fewest} of at least {FEWEST} pairs" if fewest < FEWEST else ""
    reasons = _reasons(claim, numbers) if whole == "refuted" else ()
    return ClaimVerdict(claim, whole, results, few or claim.note, paper, contradictions, reasons)


def _reasons(claim: Claim, numbers: Numbers) -> tuple[tuple[Reason, ContrastResult | None], ...]:
    """The reasons of a claim that need no numbers, or that the numbers support, with the least certain contrast."""
    reasons: list[tuple[Reason, ContrastResult | None]] = []
    for reason in claim.reasons:
        if reason.predicate is None:
            reasons.append((reason, None))
            continue
        results = [judge_contrasts([one])[0] for one in _contrasts(reason.predicate, numbers, reason.measure)]
        if reason.predicate.overall_verdict([one.verdict for one in results]) == "supported":
            reasons.append((reason, max(results, key=lambda one: one.p)))
    return tuple(reasons)


def _closed_gate(gates: tuple[Gate | None, ...], numbers: Numbers) -> str:
    """Why a claim about accuracy cannot be decided: the reason of the first gate that is not passed; else empty."""
    return next((reason for one in gates if one is not None and (reason := _gate_reason(one, numbers))), "")


def _gate_reason(gate: Gate, numbers: Numbers) -> str:
    """Why no claim about accuracy can be decided; empty if the base is above every floor."""
    for floor in gate.floors:
        values = _values_of_common_seeds(numbers, gate.measure, (gate.base, floor))
        base, low = values(gate.base), values(floor)
        if not base or not low:
            return f"the gate is not measured: {gate.base} against {floor}"
        gaps = [a - b for a, b in zip(base, low, strict=True)]
        if len(gaps) < FEWEST:
            return f"the gate ({gate.base} above {floor}) has {len(gaps)} of at least {FEWEST} pairs"
        if interval(gaps)[0] <= 0:
            return f"gate: {gate.base} is not above {floor} ({fmean(gaps):+.2f} points)"
    return ""


def _missing_precondition(precondition: Predicate, numbers: Numbers, measure: str) -> tuple[bool, str]:
    """Whether a precondition is shown not to hold, and why it is not shown to hold; empty if it is."""
    contrasts = _contrasts(precondition, numbers, measure)
    if not contrasts:
        return False, "its precondition was not measured"
    for one in contrasts:
        low, high = interval(one.values)
        enough_pairs = len(one.values) >= FEWEST
        if enough_pairs and high <= 0:
            return True, f"void, since {one.name} is not above 0"
        if not enough_pairs or low <= 0:
            return False, f"its precondition is not shown: {one.name} may not be above 0"
    return False, ""


def _contrasts(predicate: Predicate, numbers: Numbers, measure: str) -> tuple[SeedContrast, ...]:
    """The contrasts of a predicate; empty if cells or seeds are missing."""
    values = _values_of_common_seeds(numbers, measure, predicate.terms)
    if any(not values(term) for term in predicate.terms):
        return ()
    return predicate.contrasts(values)


def _values_of_common_seeds(numbers: Numbers, measure: str, terms: tuple[str, ...]) -> Values:
    """The numbers of some terms for the seeds that all of them have, ordered by seed."""
    seeds = sorted(set.intersection(*(set(numbers_of(numbers, measure, term)) for term in terms)))

    def values(term: str) -> tuple[float, ...] | None:
        row = numbers_of(numbers, measure, term)
        return tuple(row[seed] for seed in seeds) if row else None

    return values


def numbers_of(numbers: Numbers, by: str, term: str) -> Mapping[int, float]:
    """The numbers of a term by seed: those of the measure that the term names, or else of `by`.

    "NAME, SD" stands for each seed's distance, in the measure NAME, from the median over the seeds. A difference in
    these distances is a difference in spread (the test of Brown and Forsythe).
    """
    cell, _, measure = term.partition(" @ ")
    measures = numbers.get(cell, {})
    name = measure or by
    if name in measures or not name.endswith(SPREAD):
        return measures.get(name, {})
    row = measures.get(name.removesuffix(SPREAD), {})
    return {seed: abs(value - median(row.values())) for seed, value in row.items()}


def paper_values(papers: Mapping[str, Mapping[str, float]], column: str) -> Values:
    """The paper's numbers for terms: from the column that a term names, or else from this one."""

    def values(term: str) -> tuple[float, ...] | None:
        cell, _, other = term.partition(" @ ")
        number = papers[cell].get(other or column)
        return None if number is None else (number,)

    return values
