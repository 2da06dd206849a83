"""The picture of an entry: its boxes, ours next to the paper's."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from vantage.measures.significance import FEWEST_TESTED, interval
from vantage.storage.figures import color, panels, picture, scale_axis, set_titles
from vantage.studies.lab.page.annotations import SMALL, SVG_STYLE, Spot, in_two_lines, label_points, reference_line
from vantage.studies.lab.page.points import PAPER, Box, Point

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["arrange", "draw", "figure_of", "in_words"]

_WIDTHS = {1: 4.4, 2: 3.6, 3: 2.43}
"""Width of a box in inches, by the number of boxes side by side: at most 7.3 in all, which is 700 pixels on a page."""
_WIDEST = 3
_HEIGHT, _ROW, _AROUND = 2.2, 0.2, 0.9
"""Height in inches of a box with an x axis, of a row, and of the space around rows."""
_BELOW = 0.36
"""Inches from an axis to its legend."""
_MARKERS = "osD^vP*"


def draw(boxes: Sequence[Box]) -> bytes:
    """The picture as SVG, with a description that holds all of its numbers."""
    from matplotlib import rc_context

    with rc_context(SVG_STYLE):
        return picture(figure_of(boxes), "svg", in_words(boxes))


def in_words(boxes: Sequence[Box]) -> str:
    """A description of a picture with all of its numbers."""
    return " ".join(box.words for box in boxes)


def arrange(boxes: Sequence[Box]) -> list[list[Box]]:
    """Boxes in rows of at most three: the boxes of a panel side by side or, if that needs fewer rows, the boxes of a
    source."""
    by_panel = [[box for box in boxes if box.panel == panel] for panel in _distinct(box.panel for box in boxes)]
    by_source = [[box for box in boxes if box.source == source] for source in _distinct(box.source for box in boxes)]
    return min(_pack(by_panel), _pack(by_source), key=len)


def _distinct(values: Iterable[Any]) -> list[Any]:
    distinct: list[Any] = []
    for value in values:
        distinct += [value] if value not in distinct else []
    return distinct


def _pack(groups: list[list[Box]]) -> list[list[Box]]:
    """Groups one after another, each added to the previous row if it fits as a whole."""
    rows: list[list[Box]] = []
    for group in groups:
        if rows and len(rows[-1]) + len(group) <= _WIDEST:
            rows[-1] += group
            continue
        wide = math.ceil(len(group) / math.ceil(len(group) / _WIDEST))
        rows += [group[start : start + wide] for start in range(0, len(group), wide)]
    return rows


def figure_of(boxes: Sequence[Box]) -> "Figure":
    """The figure: large points are means over seeds with their 95 % t interval, faint lines connect the points of a
    seed, and the paper's points are hollow."""
    table = arrange(boxes)
    columns = max(map(len, table))
    figure, axes = panels(len(table), columns, _WIDTHS[columns], max(map(_height, boxes)))
    spots: list[tuple[Any, list[Spot]]] = []
    for row, across in zip(table, axes, strict=True):
        legends = _legend_places(row)
        for place, axis in enumerate(across):
            if place >= len(row):
                axis.set_visible(False)
            else:
                show_names = place == 0 or row[place - 1].panel.rows != row[place].panel.rows
                spots.append((axis, _draw(axis, row[place], show_names)))
                if place in legends:
                    _legend(axis, row[place])
    figure.draw_without_rendering()  # fixes the sizes of the panels, which the placement of names needs
    for axis, names in spots:
        label_points(axis, names)
    return figure


def _height(box: Box) -> float:
    legend = _ROW * math.ceil(len(box.curves) / 2) if _has_legend(box) else 0.0
    return legend + (_AROUND + _ROW * len(box.panel.rows) if box.panel.rows else _HEIGHT)


def _has_legend(box: Box) -> bool:
    """Whether the curves need a legend; rows are labeled already."""
    return len(box.curves) > 1 and (box.source == PAPER or not box.panel.rows)


def _legend_places(row: Sequence[Box]) -> set[int]:
    """The boxes of a row that get a legend: the middle one of each group of neighbors with the same legend."""
    places: set[int] = set()
    keys = [(tuple(box.curves), box.source == PAPER) if _has_legend(box) else None for box in row]
    start = 0
    for end in range(1, len(row) + 1):
        if end == len(row) or keys[end] != keys[start]:
            places |= {(start + end - 1) // 2} if keys[start] else set()
            start = end
    return places


def _draw(axis: Any, box: Box, show_names: bool) -> list[Spot]:
    """Draw a box, and return its points that need a name."""
    panel, rows, spots = box.panel, box.panel.rows, list[Spot]()
    if panel.log:
        _logarithmic(axis, bool(rows))
    for number, (name, curve) in enumerate(box.curves.items()):
        style = _style(name, number, box)
        places = [_Place.of(point, rows) for point in curve]
        _seeds(axis, places, style, connect=not panel.x_measure)
        _means(axis, places, style, connect=not rows and not panel.x_measure)
        if panel.x_measure:
            tint = style["color"] if name else "black"
            labels = [box.label(name, point) for point in curve]
            spots += [place.spot(label, tint) for label, place in zip(labels, places, strict=True)]
    for name, value in box.lines.items():
        ends = [(fmean(curve[0].values), fmean(curve[-1].values)) for curve in box.curves.values()]
        reference_line(axis, name, value, ends)
    if rows and len(box.floors) > 1:
        floors = [(value, rows.index(base)) for base, (_, value) in box.floors.items()]
        axis.plot(*zip(*floors, strict=True), "|", color="gray", markersize=9)
    _along(axis, box, show_names)
    _name_axes(axis, box)
    return spots


@dataclass(frozen=True)
class _Place:
    """A point on the axes: x and y for each seed, or one value for all of them."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    seeds: tuple[int, ...]

    @classmethod
    def of(cls, point: Point, rows: tuple[str, ...]) -> "_Place":
        if rows:
            return cls(point.values, (float(rows.index(point.name)),), point.seeds)
        return cls(point.at, point.values, point.seeds)

    def spot(self, label: str, tint: str) -> Spot:
        return Spot(label, fmean(self.x), fmean(self.y), _half(self.x), _half(self.y), tint)

    def of_seed(self, seed: int) -> tuple[float, float]:
        number = self.seeds.index(seed)
        return self.x[number % len(self.x)], self.y[number % len(self.y)]


def _style(name: str, number: int, box: Box) -> dict[str, Any]:
    """A color and a marker for each curve, or one for all rows of a source; the paper's points are hollow."""
    theirs = PAPER in (name, box.source)
    if name == PAPER or (theirs and len(box.curves) == 1):
        tint = "black"
    else:
        number = number if theirs or not box.panel.rows else 0
        tint = color(number)
    hollow = {"markerfacecolor": "white"} if theirs else {}
    return {"color": tint, "marker": _MARKERS[number % len(_MARKERS)], **hollow}


def _seeds(axis: Any, places: Sequence[_Place], style: dict[str, Any], connect: bool) -> None:
    """A faint line through the points of each seed; dots if the points have no order or there is only one."""
    for seed in sorted({seed for place in places for seed in place.seeds}):
        spots = [place.of_seed(seed) for place in places if seed in place.seeds]
        kind = "-" if connect and len(spots) > 1 else "."
        axis.plot(*zip(*spots, strict=True), kind, color=style["color"], alpha=0.35, linewidth=0.7, markersize=3)


def _means(axis: Any, places: Sequence[_Place], style: dict[str, Any], connect: bool) -> None:
    x, y = ([fmean(getattr(place, side)) for place in places] for side in "xy")
    across, up = ([_half(getattr(place, side)) for place in places] for side in "xy")
    line = {"linestyle": "-" if connect else "none", "linewidth": 1.2, "markersize": 4.5}
    axis.errorbar(x, y, up if any(up) else None, across if any(across) else None, elinewidth=1.2, **line, **style)


def _half(values: Sequence[float]) -> float:
    """Half the 95 % t interval of the mean; 0 if there are too few values for one."""
    low, high = interval(values)
    return (high - low) / 2 if len(values) >= FEWEST_TESTED else 0.0


def _logarithmic(axis: Any, across: bool) -> None:
    from matplotlib.ticker import NullFormatter

    (axis.set_xscale if across else axis.set_yscale)("log")
    (axis.xaxis if across else axis.yaxis).set_minor_formatter(NullFormatter())


def _along(axis: Any, box: Box, show_names: bool) -> None:
    """Ticks for rows, for numbers along the axis, or for another measure."""
    rows = box.panel.rows
    if not box.panel.log:
        axis.locator_params(axis="x" if rows else "y", nbins=3 if rows else 4)
    if rows:
        axis.set_yticks(range(len(rows)), rows if show_names else [""] * len(rows))
        axis.set_ylim(len(rows) - 0.4, -0.6)
    elif box.panel.x_measure:
        axis.margins(0.15)
        axis.locator_params(axis="x", nbins=4)
    else:
        _numbers(axis, sorted({at for curve in box.curves.values() for point in curve for at in point.at}))


def _numbers(axis: Any, numbers: Sequence[float]) -> None:
    """A tick for each number on an axis, with a label where there is room."""
    scale_axis(axis, numbers)
    ends = axis.transData.transform([(number, 1.0) for number in numbers])[:, 0]
    letter, last, labels = 0.035 * (ends[-1] - ends[0]), -math.inf, []
    for number, end in zip(numbers, ends, strict=True):
        label = f"{number:g}"
        labels.append(label if end - last >= letter * (len(label) + 0.5) else "")
        last = end if labels[-1] else last
    axis.set_xticks(numbers, labels)


def _name_axes(axis: Any, box: Box) -> None:
    """Axis labels, and a title that names the source, the number of seeds and the floor."""
    panel = box.panel
    y_axis = panel.paper_label if box.source == PAPER else panel.y_axis
    title = "\n".join((": ".join(filter(None, (box.subject, box.title))), *filter(None, (box.floor,))))
    set_titles(axis, title, *((y_axis, "") if panel.rows else (panel.x_axis, in_two_lines(y_axis))))
    axis.tick_params(labelsize=SMALL)
    axis.title.set_fontsize(SMALL + 0.5)
    for label in (axis.xaxis.label, axis.yaxis.label):
        label.set_fontsize(SMALL)


def _legend(axis: Any, box: Box) -> None:
    """Names of the curves, below the axis."""
    from matplotlib.transforms import ScaledTranslation

    marks = [axis.plot([], [], **_style(name, number, box))[0] for number, name in enumerate(box.curves)]
    below = axis.transAxes + ScaledTranslation(0, -_BELOW, axis.figure.dpi_scale_trans)
    axis.legend(marks, box.curves, loc="upper center", bbox_to_anchor=(0.5, 0.0), bbox_transform=below, ncols=2,
        fontsize=SMALL, frameon=False, handlelength=1.4, columnspacing=1.2, labelspacing=0.25)  # fmt: skip
