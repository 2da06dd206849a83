"""The papers' claims that are decided at a level: what held, and what did not, a line each."""

from collections.abc import Mapping, Sequence

from vantage.storage.tables import Table
from vantage.studies.lab.entry import Entry
from vantage.studies.lab.levels import Level
from vantage.studies.lab.page.claim_words import difference_in_words, paper_in_words
from vantage.studies.lab.page.counts import LevelResults
from vantage.studies.lab.verdicts import ClaimVerdict

__all__ = ["decided_tables"]

_HEAD = ("entry", "claim", "the paper's numbers", "here")


def decided_tables(entries: Sequence[Entry], results: Mapping[str, tuple[LevelResults, ...]], level: Level) -> str:
    """A table of the papers' own claims that a level supports, and one of those it refutes, with the reasons. Parts of
    other claims are left out, as in the counts."""
    rulings = [
        (entry, one)
        for entry in entries
        for here in results[entry.name]
        if here.level == level
        for one in here.rulings
        if not one.claim.is_ours and not one.claim.part_of
    ]
    supported = [_row(*ruling) for ruling in rulings if ruling[1].verdict == "supported"]
    refuted = [(*_row(*ruling), _reasons(ruling[1])) for ruling in rulings if ruling[1].verdict == "refuted"]
    tables = (
        ("Supported", _table(_HEAD, supported)),
        ("Refuted", _table((*_HEAD, "why, or what was ruled out"), refuted)),
    )
    return "\n".join(f"### {title} on {level.words}\n\n{table}\n" for title, table in tables)


def _row(entry: Entry, one: ClaimVerdict) -> tuple[str, ...]:
    claim = f"{one.claim.text} ({one.claim.place})"
    return f"[{entry.name}](#{entry.name})", claim, paper_in_words(one), difference_in_words(one)


def _reasons(one: ClaimVerdict) -> str:
    return "; ".join(f"{'not ' * reason.ruled_out}{reason.text}" for reason, _ in one.reasons)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    return Table(head, tuple(rows), left=tuple(range(len(head)))).markdown(padded=False)
