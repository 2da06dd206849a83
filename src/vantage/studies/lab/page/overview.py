"""One picture of all papers: the difference behind each claim about accuracy, with its interval and verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vantage.storage.figures import COLORS, panels, picture, set_titles
from vantage.studies.lab.entry import Entry
from vantage.studies.lab.judging.contrasts import ContrastResult
from vantage.studies.lab.levels import Level
from vantage.studies.lab.page.annotations import SMALL, SVG_STYLE
from vantage.studies.lab.page.claim_words import least_certain, paper_numbers
from vantage.studies.lab.page.counts import LevelResults, papers_rulings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Effect", "draw_overview", "effects", "overview_figure", "overview_in_words"]

_TINTS = {"supported": COLORS[2], "refuted": COLORS[1], "undecided": "#888888"}
"""Color of each verdict."""

_WIDTH, _ROW, _AROUND = 7.3, 0.155, 0.9
"""Width of the picture, height of a row and of the space around the rows, in inches."""

_LINEAR = 1.0
"""Differences in points up to which the axis is linear; it is logarithmic beyond."""

_HOLLOW: dict[str, Any] = {
    "markersize": 3,
    "markerfacecolor": "white",
    "markeredgecolor": "black",
    "markeredgewidth": 0.6,
}
"""Points of the paper."""

_LETTERS = 78
"""Most letters of a claim."""


@dataclass(frozen=True)
class Effect:
    """A claim of a paper about accuracy, and the difference that decides it."""

    paper: str
    """The paper."""

    claim: str
    """Its words, shortened."""

    result: ContrastResult
    """The difference in points; above 0 it is as claimed."""

    verdict: str
    """supported, refuted or undecided."""

    paper_numbers: tuple[float, ...] = ()
    """What the paper has for the same difference, for each of its columns."""


def effects(
    entries: Sequence[Entry], results: Mapping[str, tuple[LevelResults, ...]], level: Level
) -> tuple[Effect, ...]:
    """The papers' claims about accuracy at a level that compare numbers in points. Claims that differences are small,
    or that are about correlations, have no such difference."""
    return tuple(
        Effect(entry.paper, _shorten(one.claim.text), least, one.verdict, paper_numbers(one))
        for entry, one in papers_rulings(entries, results, level)
        if one.claim.accuracy and one.verdict in _TINTS
        if (least := least_certain(one)).n > 1 and least.is_difference
    )


def draw_overview(shown: Sequence[Effect]) -> bytes:
    """The picture as SVG, with a description that holds its numbers."""
    from matplotlib import rc_context

    with rc_context(SVG_STYLE):
        return picture(overview_figure(shown), "svg", overview_in_words(shown))


def overview_in_words(shown: Sequence[Effect]) -> str:
    """A description of the picture with all of its numbers."""
    return " ".join(
        f"{one.paper}: {one.claim}: {one.verdict}, {one.result.mean:+.2f} [{one.result.low:+.2f},"
        f" {one.result.high:+.2f}]{_paper_in_words(one)}."
        for one in shown
    )


def _paper_in_words(one: Effect) -> str:
    numbers = ", ".join(f"{number:+.3g}" for number in sorted(one.paper_numbers))
    return f", the paper {numbers}" if numbers else ""


def overview_figure(shown: Sequence[Effect]) -> "Figure":
    """A row for each claim, under the name of its paper: the mean difference, its 95 % interval and, by color, the
    verdict; hollow points are the paper's own numbers."""
    rows: list[Effect | str] = []
    for one in shown:
        if one.paper not in rows:
            rows.append(one.paper)
        rows.append(one)
    figure, axes = panels(1, 1, _WIDTH, _AROUND + _ROW * len(rows))
    axis = axes[0, 0]
    for place, one in enumerate(rows):
        if isinstance(one, Effect):
            mean, test = one.result.mean, one.result
            axis.errorbar(mean, place, xerr=[[mean - test.low], [test.high - mean]], fmt="o", markersize=3.5,
                color=_TINTS[one.verdict], elinewidth=1.2)  # fmt: skip
            axis.plot(one.paper_numbers, [place] * len(one.paper_numbers), "o", **_HOLLOW)
    for verdict, tint in _TINTS.items():
        axis.plot([], [], "o", color=tint, markersize=4, label=verdict)
    axis.plot([], [], "o", label="in the paper", **_HOLLOW)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_xscale("symlog", linthresh=_LINEAR, linscale=0.9)
    ticks = (-10, -5, -2, -1, 0, 1, 2, 5, 10)
    axis.set_xticks(ticks, [f"{tick:+g}" if tick else "0" for tick in ticks])
    axis.minorticks_off()
    axis.set_yticks(range(len(rows)), [one if isinstance(one, str) else one.claim for one in rows])
    for label, one in zip(axis.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if isinstance(one, str) else "normal")
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.tick_params(axis="y", labelsize=SMALL - 1, length=0)
    axis.tick_params(axis="x", labelsize=SMALL)
    set_titles(axis, "", "points of accuracy; right of 0 as the paper claims", "")
    axis.xaxis.label.set_fontsize(SMALL)
    figure.legend(loc="outside upper right", ncols=4, fontsize=SMALL, frameon=False)
    return figure


def _shorten(claim: str) -> str:
    return claim if len(claim) <= _LETTERS else claim[: _LETTERS - 2].rsplit(" ", 1)[0] + " …"
