"""The points of an entry's picture: our results and the paper's values for each of its panels."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from vantage.studies.lab.entry import Entry, Gate
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.verdicts import Numbers, numbers_of, paper_values

__all__ = ["PAPER", "Box", "Point", "boxes"]

PAPER = "the paper"
"""The source of a box with the paper's points."""


@dataclass(frozen=True)
class Point:
    """One point: a value for each seed, or a single value from the paper."""

    name: str
    """The term's cell, or its measure if all terms are of one cell."""

    values: tuple[float, ...]
    """The measured values."""

    at: tuple[float, ...] = ()
    """Its x position: one number, or one for each seed; empty in rows."""

    seeds: tuple[int, ...] = ()
    """The seeds; empty for the paper."""


@dataclass(frozen=True)
class Box:
    """A panel with the points of one source: a level of the lab, or the paper."""

    panel: Panel
    """The panel, which describes the axes."""

    source: str
    """The level in words, or `PAPER` for the paper's own points."""

    curves: Mapping[str, tuple[Point, ...]]
    """The points of each curve by its name."""

    lines: Mapping[str, float]
    """The values of the horizontal lines by name."""

    floors: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """By the base of each gate, the highest of its floors and its value, if they are of the same measure."""

    @property
    def floor(self) -> str:
        """The floor in words; the range of the floors if the gates have different ones."""
        different = sorted({value: name for name, value in self.floors.values()}.items())
        if len(different) > 1:
            where = "floors (gray)" if self.panel.rows else "floors"
            return f"{where}: {different[0][0]:.3g} to {different[-1][0]:.3g}"
        return "".join(f"floor: {name} {value:.3g}" for value, name in different)

    @property
    def subject(self) -> str:
        """What the names of all points begin with, such as a color space; "" if they differ or stand in rows."""
        beginnings = {one.name.partition(", ")[0] for curve in self.curves.values() for one in curve}
        return beginnings.pop() if self.panel.x_measure and len(beginnings) == 1 else ""

    def label(self, curve: str, point: Point) -> str:
        """The name of a point in the picture, without what its title and its legend say."""
        label = point.name.removeprefix(f"{self.subject}, ")
        return "" if label == curve else label.removeprefix(f"{curve}, ").removeprefix(f"{curve} ")

    @property
    def title(self) -> str:
        """The source of the points, and the number of seeds."""
        counts = sorted({len(one.seeds) for curve in self.curves.values() for one in curve if one.seeds})
        if not counts:
            return self.source
        seeds = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
        return f"{self.source}, {seeds} seed{'s' * (counts[-1] > 1)}"

    @property
    def sources(self) -> tuple[str, ...]:
        """Where its points come from: its source, and the paper if its points share the axes."""
        return (self.source, PAPER) if PAPER in self.curves else (self.source,)

    @property
    def words(self) -> str:
        """All of its numbers, for readers who cannot see the picture."""
        curves = (
            f"{f'{name}: ' if name else ''}{', '.join(f'{one.name} {fmean(one.values):.4g}' for one in curve)}"
            for name, curve in self.curves.items()
        )
        axes = self.panel.paper_label if self.source == PAPER else self.panel.axes
        return f"{axes}, {self.title}: {'; '.join(curves)}."


def boxes(entry: Entry, sources: Sequence[tuple[str, Numbers]]) -> tuple[Box, ...]:
    """The boxes of an entry's picture from the numbers of each level, panel by panel. A level gets none unless one of
    its curves has at least two points, not counting the gate's base."""
    return tuple(box for panel in entry.panels for box in _of_panel(panel, entry, sources))


def _of_panel(panel: Panel, entry: Entry, sources: Sequence[tuple[str, Numbers]]) -> Iterator[Box]:
    paper = _paper(panel, entry)
    base = entry.gate.base if entry.gate else ""
    has_box = False
    for source, numbers in sources:
        curves = {name: _points(panel, name, numbers) for name in panel.curves}
        curves = {name: curve for name, curve in curves.items() if curve}
        if max((sum(one.name != base for one in curve) for curve in curves.values()), default=0) < 2:
            continue
        has_box = True
        means = {term.rpartition(" @ ")[2]: numbers_of(numbers, panel.measure, term) for term in panel.reference_lines}
        lines = {name: fmean(row.values()) for name, row in means.items() if row}
        yield Box(
            panel, source, curves | (paper if panel.paper_shares_axes else {}), lines, _floors(panel, entry, numbers)
        )
    if has_box and paper and not panel.paper_shares_axes:
        yield Box(panel, PAPER, paper, {})


def _floors(panel: Panel, entry: Entry, numbers: Numbers) -> dict[str, tuple[str, float]]:
    """The highest floor of each gate whose base is in the panel, or of the entry's, by the measure of the panel."""
    floors: dict[str, tuple[str, float]] = {}
    for gate in _gates(panel, entry) if not panel.y_label else ():
        rows = {name: numbers_of(numbers, panel.measure, name) for name in gate.floors}
        means = {name: fmean(row.values()) for name, row in rows.items() if row}
        if means:
            floors[gate.base] = max(means.items(), key=lambda mean: mean[1])
    return floors


def _gates(panel: Panel, entry: Entry) -> tuple[Gate, ...]:
    cells = {term.partition(" @ ")[0] for term in panel.terms}
    every = (entry.gate, *(gate for claim in entry.claims for gate in claim.gates))
    own = dict.fromkeys(gate for gate in every if gate and gate.base in cells)
    return tuple(own) or ((entry.gate,) if entry.gate else ())


def _points(panel: Panel, curve: str, numbers: Numbers) -> tuple[Point, ...]:
    points = []
    for term, at in _positions(panel, curve):
        row = numbers_of(numbers, panel.measure, term)
        across = numbers_of(numbers, panel.x_measure, term.partition(" @ ")[0]) if panel.x_measure else row
        seeds = tuple(sorted(set(row) & set(across)))
        if seeds:
            place = tuple(across[seed] for seed in seeds) if panel.x_measure else at
            points.append(Point(panel.name(term), tuple(row[seed] for seed in seeds), place, seeds))
    return tuple(points)


def _paper(panel: Panel, entry: Entry) -> dict[str, tuple[Point, ...]]:
    """The paper's points by column, and by curve if there are several; one curve if they share our axes."""
    papers = {cell.name: cell.paper for cell in entry.cells}
    curves: dict[str, tuple[Point, ...]] = {}
    for column in panel.paper_columns:
        values = paper_values(papers, column)
        for name in panel.curves:
            numbers = [(term, at, values(term)) for term, at in _positions(panel, name)]
            points = tuple(Point(panel.name(term), number, at) for term, at, number in numbers if number)
            parts = (column, "" if panel.rows else name)
            title = PAPER if panel.paper_shares_axes else ", ".join(part for part in parts if part)
            curves |= {title: (*curves.get(title, ()), *points)} if points else {}
    return curves


def _positions(panel: Panel, curve: str) -> list[tuple[str, tuple[float, ...]]]:
    """The terms of a curve with their positions, in the order of the axis."""
    terms = panel.curves[curve]
    if isinstance(terms, Mapping):
        return [(term, (float(terms[term]),)) for term in sorted(terms, key=lambda term: terms[term])]
    return [(term, ()) for term in terms]
