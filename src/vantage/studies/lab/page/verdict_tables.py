"""Claims, a line each: what held at a level, what did not, and what it cannot tell; and what other levels decide."""

from collections.abc import Mapping, Sequence

from vantage.storage.tables import Table
from vantage.studies.lab.entry import Entry
from vantage.studies.lab.levels import LEVELS, Level
from vantage.studies.lab.page.claim_words import (
    DECIDED,
    difference_in_words,
    is_below_paper,
    paper_in_words,
    verdict_word,
)
from vantage.studies.lab.page.counts import LevelResults, papers_rulings
from vantage.studies.lab.verdicts import ClaimVerdict

__all__ = ["changes_by_level", "verdict_tables"]

_LAST_COLUMN = {"supported": "note", "refuted": "why, or what was ruled out", "undecided": "note"}
"""The verdicts that are listed, with the name of the last column."""
_BELOW = "smaller than in the paper"


def verdict_tables(entries: Sequence[Entry], results: Mapping[str, tuple[LevelResults, ...]], level: Level) -> str:
    """Tables of the papers' own claims that a level supports, refutes or leaves undecided. Parts of other claims are
    left out, as in the counts."""
    rulings = papers_rulings(entries, results, level)
    tables = []
    for verdict, last in _LAST_COLUMN.items():
        rows = tuple((*_row(*ruling), _reasons(ruling[1])) for ruling in rulings if ruling[1].verdict == verdict)
        head = ("entry", "claim", "the paper's numbers", "here", last)
        tables.append(_table(f"{verdict.capitalize()} on {level.words}", head, rows))
    return "\n".join((*tables, *_how_many_are_below_paper([one for _, one in rulings])))


def _how_many_are_below_paper(rulings: Sequence[ClaimVerdict]) -> tuple[str, ...]:
    """A sentence on undecided claims; none if there is nothing to compare."""
    each = [is_below_paper(one) for one in rulings if one.verdict == "undecided"]
    compared, below = [one for one in each if one is not None], each.count(True)
    if not compared:
        return ()
    return (
        f"Of the {len(compared)} undecided differences in accuracy for which the paper has numbers,"
        f" {below} {'is' if below == 1 else 'are'} {_BELOW}: the interval ends below the paper's smallest number.\n",
    )


def changes_by_level(entries: Sequence[Entry], results: Mapping[str, tuple[LevelResults, ...]]) -> str:
    """A table of the claims, ours too, that another level decides and the first one does not, or decides otherwise.
    Parts of other claims are left out. Empty if there are none."""
    changed = [
        (entry, {here.level.words: one for here, one in zip(results[entry.name], same, strict=True)})
        for entry in entries
        for same in zip(*(here.rulings for here in results[entry.name]), strict=True)
        if not same[0].claim.part_of
        and any(one.verdict in DECIDED and one.verdict != same[0].verdict for one in same[1:])
    ]
    columns = [level.words for level in LEVELS if any(level.words in by_level for _, by_level in changed)]
    rows = tuple(
        (*_name(entry, next(iter(by_level.values()))), *(_verdict(by_level.get(level)) for level in columns))
        for entry, by_level in changed
    )
    if not rows:
        return ""
    return _table("What longer training decides otherwise", ("entry", "claim", *columns), rows)


def _table(title: str, head: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> str:
    table = Table(head, rows, left=tuple(range(len(head)))).markdown(padded=False)
    return f"### {title}\n\n{table}\n"


def _verdict(one: ClaimVerdict | None) -> str:
    return f"{verdict_word(one)}: {difference_in_words(one)}" if one is not None and one.results else ""


def _row(entry: Entry, one: ClaimVerdict) -> tuple[str, ...]:
    return *_name(entry, one), paper_in_words(one), difference_in_words(one)


def _name(entry: Entry, one: ClaimVerdict) -> tuple[str, str]:
    return f"[{entry.name}](#{entry.name})", f"{one.claim.text} ({one.claim.place})"


def _reasons(one: ClaimVerdict) -> str:
    """Why a claim is refuted, or the note on another one; for an undecided one, whether it is smaller than the
    paper's."""
    reasons = [f"{'not ' * reason.ruled_out}{reason.text}" for reason, _ in one.reasons]
    below = [_BELOW] if one.verdict == "undecided" and is_below_paper(one) else []
    return "; ".join((*below, *(reasons or filter(None, [one.reason]))))
