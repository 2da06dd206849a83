"""The papers' claims at a level, a line each: what held, what did not, and what the level cannot tell."""

from collections.abc import Mapping, Sequence

from vantage.storage.tables import Table
from vantage.studies.lab.entry import Entry
from vantage.studies.lab.levels import Level
from vantage.studies.lab.page.claim_words import difference_in_words, paper_in_words
from vantage.studies.lab.page.counts import LevelResults, papers_rulings
from vantage.studies.lab.verdicts import ClaimVerdict

__all__ = ["verdict_tables"]

_LAST_COLUMN = {"supported": "note", "refuted": "why, or what was ruled out", "undecided": "note"}
"""The verdicts that are listed, with the name of the last column."""


def verdict_tables(entries: Sequence[Entry], results: Mapping[str, tuple[LevelResults, ...]], level: Level) -> str:
    """Tables of the papers' own claims that a level supports, refutes or leaves undecided. Parts of other claims are
    left out, as in the counts."""
    rulings = papers_rulings(entries, results, level)
    tables = []
    for verdict, last in _LAST_COLUMN.items():
        rows = tuple((*_row(*ruling), _reasons(ruling[1])) for ruling in rulings if ruling[1].verdict == verdict)
        head = ("entry", "claim", "the paper's numbers", "here", last)
        table = Table(head, rows, left=tuple(range(len(head)))).markdown(padded=False)
        tables.append(f"### {verdict.capitalize()} on {level.words}\n\n{table}\n")
    return "\n".join(tables)


def _row(entry: Entry, one: ClaimVerdict) -> tuple[str, ...]:
    claim = f"{one.claim.text} ({one.claim.place})"
    return f"[{entry.name}](#{entry.name})", claim, paper_in_words(one), difference_in_words(one)


def _reasons(one: ClaimVerdict) -> str:
    """Why a claim is refuted, or the note on another one."""
    reasons = [f"{'not ' * reason.ruled_out}{reason.text}" for reason, _ in one.reasons]
    return "; ".join(reasons) or one.reason
