"""The points of an entry's picture: what results and the paper have for each of its panels."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from vantage.studies.lab.entry import Entry
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.ruling import Numbers, held, of_paper

__all__ = ["PAPER", "Box", "Point", "boxes"]

PAPER = "the paper"
"""Where a box's points are from that are not ours."""


@dataclass(frozen=True)
class Point:
    """What stands at one place: a value for each seed, or one of the paper."""

    name: str
    """The term's cell, or its measure where all are of one cell."""

    values: tuple[float, ...]
    """What was measured."""

    at: tuple[float, ...] = ()
    """Where it stands: one number, or one for each seed; none in rows."""

    seeds: tuple[int, ...] = ()
    """The seeds; none of the paper."""


@dataclass(frozen=True)
class Box:
    """A panel with the points of one source: a level of the lab, or the paper."""

    panel: Panel
    """What lies on its axes."""

    source: str
    """The level in words, or `PAPER`."""

    curves: Mapping[str, tuple[Point, ...]]
    """Points by the name of their curve."""

    lines: Mapping[str, float]
    """Means of its lines by name."""

    floor: str = ""
    """The highest of the gate's floors, where they are of the same measure, in words."""

    @property
    def title(self) -> str:
        """Whose points these are, and of how many seeds."""
        counts = sorted({len(one.seeds) for curve in self.curves.values() for one in curve if one.seeds})
        if not counts:
            return self.source
        seeds = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
        return f"{self.source}, {seeds} seed{'s' * (counts[-1] > 1)}"

    @property
    def words(self) -> str:
        """All of its numbers, for those who do not see them."""
        curves = (
            f"{f'{name}: ' if name else ''}{', '.join(f'{one.name} {fmean(one.values):.4g}' for one in curve)}"
            for name, curve in self.curves.items()
        )
        axes = self.panel.theirs if self.source == PAPER else self.panel.axes
        return f"{axes}, {self.title}: {'; '.join(curves)}."


def boxes(entry: Entry, sources: Sequence[tuple[str, Numbers]]) -> tuple[Box, ...]:
    """The boxes of an entry's picture from the numbers of each level, panel by panel; none of a level that has fewer
    than two points of every curve, the gate's base left out."""
    return tuple(box for panel in entry.panels for box in _of_panel(panel, entry, sources))


def _of_panel(panel: Panel, entry: Entry, sources: Sequence[tuple[str, Numbers]]) -> Iterator[Box]:
    paper = _paper(panel, entry)
    base = entry.gate.base if entry.gate else ""
    shown = False
    for source, numbers in sources:
        curves = {name: _points(panel, name, numbers) for name in panel.curves}
        curves = {name: curve for name, curve in curves.items() if curve}
        if max((sum(one.name != base for one in curve) for curve in curves.values()), default=0) < 2:
            continue
        shown = True
        means = {term.rpartition(" @ ")[2]: held(numbers, panel.by, term) for term in panel.lines}
        lines = {name: fmean(row.values()) for name, row in means.items() if row}
        yield Box(panel, source, curves | (paper if panel.together else {}), lines, _floor(panel, entry, numbers))
    if shown and paper and not panel.together:
        yield Box(panel, PAPER, paper, {})


def _floor(panel: Panel, entry: Entry, numbers: Numbers) -> str:
    """The highest floor of the gate by what the panel measures."""
    rows = {name: held(numbers, panel.by, name) for name in (entry.gate.floors if entry.gate else ())}
    means = {name: fmean(row.values()) for name, row in rows.items() if row}
    if not means or panel.up:
        return ""
    highest = max(means, key=lambda name: means[name])
    return f"{highest} {means[highest]:.3g}"


def _points(panel: Panel, curve: str, numbers: Numbers) -> tuple[Point, ...]:
    points = []
    for term, at in _placed(panel, curve):
        row = held(numbers, panel.by, term)
        across = held(numbers, panel.against, term.partition(" @ ")[0]) if panel.against else row
        seeds = tuple(sorted(set(row) & set(across)))
        if seeds:
            place = tuple(across[seed] for seed in seeds) if panel.against else at
            points.append(Point(panel.name(term), tuple(row[seed] for seed in seeds), place, seeds))
    return tuple(points)


def _paper(panel: Panel, entry: Entry) -> dict[str, tuple[Point, ...]]:
    """The paper's points by column, and by curve where there are several; as one curve where they stand in ours."""
    papers = {cell.name: cell.paper for cell in entry.cells}
    curves: dict[str, tuple[Point, ...]] = {}
    for column in panel.columns:
        values = of_paper(papers, column)
        for name in panel.curves:
            numbers = [(term, at, values(term)) for term, at in _placed(panel, name)]
            points = tuple(Point(panel.name(term), number, at) for term, at, number in numbers if number)
            parts = (column, "" if panel.rows else name)
            title = PAPER if panel.together else ", ".join(part for part in parts if part)
            curves |= {title: (*curves.get(title, ()), *points)} if points else {}
    return curves


def _placed(panel: Panel, curve: str) -> list[tuple[str, tuple[float, ...]]]:
    """Terms of a curve with where they stand, in the order of the axis."""
    terms = panel.curves[curve]
    if isinstance(terms, Mapping):
        return [(term, (float(terms[term]),)) for term in sorted(terms, key=lambda term: terms[term])]
    return [(term, ()) for term in terms]
