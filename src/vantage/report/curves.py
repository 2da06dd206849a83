"""The training curves of runs, and of the branches of a single run: one chart for each recorded number."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from markupsafe import Markup

from vantage.facts.run_facts import RunFacts
from vantage.report.drawing import Band, Line, Zone, chart
from vantage.training.watching.monitor import SMALLEST_DEVIATION, smallest_rank

__all__ = ["Chart", "curves"]

_MOST_LINES = 4
"""So many branches have a line each; the lines of more would cover one another."""


@dataclass(frozen=True)
class Chart:
    """A chart with a title and a caption."""

    title: str
    """What it shows."""
    caption: str
    """How to read it, in one sentence."""
    drawing: Markup
    """The SVG."""
    legend: tuple[Line, ...] = ()
    """Its lines, if they are not one for each run."""
    band: Band | None = None
    """Its band, for the legend."""


_CURVES = (
    ("loss", "Loss", "Its scale depends on the negatives, so compare it within a method only. Lower is better."),
    ("accuracy", "Contrastive accuracy", "Share of queries that are closer to their own image than to any other."),
    (
        "alignment",
        "Alignment",
        "Mean squared distance of two views of an image. Low is good while they stay spread.",
    ),
    ("uniformity", "Uniformity", "About −4 if the vectors are spread evenly, 0 if all of them are equal."),
    ("deviation", "Deviation", "1 if the vectors are spread over the sphere, 0 if all of them are equal."),
    ("rank", "Effective rank", "About how many dimensions the vectors use."),
    ("knn", "kNN accuracy in %", "The others classify a tenth of the labeled training images, during training."),
)


def curves(runs: Sequence[RunFacts]) -> list[Chart]:
    """The charts of the numbers that at least one run recorded. Each has a line for each run; on the page of a single
    run, also one for each branch that recorded the number (`loss.0`, `rank.1`), or a band of more than four."""
    charts = []
    for key, title, about in _CURVES:
        lines = [Line(facts.name, _points(facts, key), number) for number, facts in enumerate(runs)]
        branches = _branches(runs[0], key) if len(runs) == 1 else []
        if branches and key == "loss":
            about += " The branches are shown before their weights."
        lines, band = _with_branches(lines, branches, key)
        drawing = chart(title, lines, "epoch", _zone(key, runs), band=band)
        if drawing:
            charts.append(Chart(title, about, drawing, tuple(lines) if branches else (), band))
    return charts


def _with_branches(lines: list[Line], branches: list[Line], key: str) -> tuple[list[Line], Band | None]:
    """The lines of a chart, and the band of its branches if they are too many for lines. The only line of a run with
    branches is the weighted sum of their losses, or the number of the first branch."""
    if not branches:
        return lines, None
    if key == "loss":
        lines = [replace(lines[0], name="weighted sum")]
    else:
        branches, lines = [replace(lines[0], name="branch 0", number=1), *branches], []
    if len(branches) <= _MOST_LINES:
        return [*lines, *branches], None
    values: dict[float, list[float]] = {}
    for epoch, value in sorted(point for branch in branches for point in branch.points):
        values.setdefault(epoch, []).append(value)
    band = Band(f"range of {len(branches)} branches", [(epoch, min(of), max(of)) for epoch, of in values.items()], 1)
    mean = Line(f"mean of {len(branches)} branches", [(epoch, fmean(of)) for epoch, of in values.items()], 1)
    return lines or [mean], band


def _branches(facts: RunFacts, key: str) -> list[Line]:
    """The lines of a run's branches; their colors are the same in every chart."""
    lines = [Line(f"branch {n}", _points(facts, f"{key}.{n}"), n + 1) for n in range(len(facts.run.branches))]
    return [line for line in lines if line.points]


def _points(facts: RunFacts, key: str) -> list[tuple[float, float]]:
    rows = [(row.get("epoch"), row.get(key)) for row in facts.rows]
    return [
        (float(epoch), float(value))
        for epoch, value in rows
        if isinstance(epoch, int) and isinstance(value, int | float) and math.isfinite(value)
    ]


def _zone(key: str, runs: Sequence[RunFacts]) -> Zone | None:
    """Values at which the monitor warns of a collapse; for the rank of several runs, where it warns for all."""
    if key == "deviation":
        return Zone(0.0, SMALLEST_DEVIATION, "collapse")
    if key == "rank":
        return Zone(0.0, min(smallest_rank(facts.width) for facts in runs), "collapse")
    return None
