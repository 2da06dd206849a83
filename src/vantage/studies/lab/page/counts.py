"""The two tables at the top of the page of claims: verdicts by paper and level, and every entry with its verdicts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vantage.storage.tables import Table
from vantage.studies.analyse.classes import AugmentationMaps
from vantage.studies.lab.entry import Entry
from vantage.studies.lab.levels import LEVELS, Level
from vantage.studies.lab.verdicts import VERDICTS, ClaimVerdict, Numbers

__all__ = ["LevelResults", "count_table", "entry_table", "papers_rulings"]

_SPLIT = VERDICTS[:3]
"""Verdicts that are counted apart for the papers' claims and for ours."""


@dataclass(frozen=True)
class LevelResults:
    """An entry at one level."""

    level: Level
    """The level."""

    entry: Entry
    """The entry, at that level."""

    numbers: Numbers
    """Its numbers."""

    rulings: tuple[ClaimVerdict, ...]
    """The verdict on each of its claims."""

    maps: AugmentationMaps | None = None
    """Its map; None if it has none yet."""


def count_table(entries: Sequence[Entry], results: Mapping[str, tuple[LevelResults, ...]]) -> str:
    """Verdicts by paper and level. A claim that is part of another one counts as repeated, whatever its verdict."""
    rows: list[tuple[str, ...]] = []
    for level in LEVELS:
        each = [(entry, one) for entry in entries for one in results[entry.name] if one.level == level]
        for paper in (*dict.fromkeys(entry.paper for entry, _ in each), *([""] if each else [])):
            rulings = [one for entry, here in each if paper in ("", entry.paper) for one in here.rulings]
            wrong = sum(bool(one.contradictions) for one in rulings)
            last = str(wrong) if level is LEVELS[0] else ""
            rows.append((f"{paper or 'all'}, {level.words}", *_counts(rulings), last))
    split = (f"{verdict}, {whose}" for verdict in _SPLIT for whose in ("papers", "ours"))
    head = ("claims", *split, *VERDICTS[len(_SPLIT) :], "repeated", "✗ by its own numbers")
    return Table(head, tuple(rows)).markdown() + "\n"


def entry_table(entries: Sequence[Entry], results: Mapping[str, tuple[LevelResults, ...]]) -> str:
    """Every entry with a link to its section, what it compares, and how many claims have which verdict."""
    levels = [level for level in LEVELS if any(one.level == level for each in results.values() for one in each)]
    rows = []
    for entry in entries:
        verdicts = {one.level: _verdicts_in_words(one.rulings) for one in results[entry.name]}
        counts = (verdicts.get(level, "") for level in levels)
        rows.append((f"[{entry.name}](#{entry.name})", f"{entry.place}: {entry.summary}", *counts))
    head = ("entry", "what is compared", *(level.words for level in levels))
    return Table(head, tuple(rows), left=tuple(range(len(head)))).markdown(padded=False) + "\n"


def papers_rulings(
    entries: Sequence[Entry], results: Mapping[str, tuple[LevelResults, ...]], level: Level
) -> list[tuple[Entry, ClaimVerdict]]:
    """The verdicts on the papers' own claims at a level, with their entries. Parts of other claims are left out."""
    return [
        (entry, one)
        for entry in entries
        for here in results[entry.name]
        if here.level == level
        for one in here.rulings
        if not one.claim.is_ours and not one.claim.part_of
    ]


def _counts(rulings: Sequence[ClaimVerdict]) -> tuple[str, ...]:
    """A cell for each column between the name of a row and what the papers' own numbers contradict."""
    counts = Counter((one.verdict, one.claim.is_ours) for one in rulings if not one.claim.part_of)
    split = [counts[verdict, ours] for verdict in _SPLIT for ours in (False, True)]
    both = [counts[verdict, False] + counts[verdict, True] for verdict in VERDICTS[len(_SPLIT) :]]
    repeated = sum(bool(one.claim.part_of) for one in rulings)
    return tuple(map(str, (*split, *both, repeated)))


def _verdicts_in_words(rulings: Iterable[ClaimVerdict]) -> str:
    counts = Counter(one.verdict for one in rulings)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
