"""Words in the panels of an entry's picture: names next to points, reference lines with their names, long labels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["SMALL", "SVG_STYLE", "Spot", "in_two_lines", "label_points", "reference_line"]

SMALL = 7.5
"""Size of the smaller text, in points."""

SVG_STYLE: Any = {"svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans", "Verdana"]}
"""Letters stay letters, which takes half the size, in fonts of about the same width."""

_LONG = 22
"""Most letters of a label on one line."""
_GRAY = "#555555"
_PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.5}
"""Background of a name that may cross a line."""
_LETTER, _LINE, _MARK = 0.58 * SMALL, 1.1 * SMALL, 3.0
"""Approximate width of a letter, height of a line and half the size of a mark, in points."""
_BESIDE = ((6.0, 3.0), (-6.0, 3.0), (6.0, -9.0), (-6.0, -9.0), (0.0, 7.0), (0.0, -14.0))
"""Where a name may stand next to its point: offsets in points."""
_AWAY = tuple(
    (radius * math.cos(turn * math.pi / 8), radius * math.sin(turn * math.pi / 8))
    for radius in (20.0, 32.0, 46.0, 62.0)
    for turn in range(16)
)
"""Where it may stand with a line to its point."""
_TOO_MUCH, _NEARER_TO_ANOTHER, _LEADER = 100.0, 3.0, 1.5
"""Costs of a place: of crossing a name, its line or the edge of the panel; of being nearer to another point; of needing
a line. A place that crosses a mark or a bar costs 1 for each."""

_Rectangle = tuple[float, float, float, float]
_Offset = tuple[float, float]


@dataclass(frozen=True)
class Spot:
    """A point with its name and half the lengths of its bars."""

    name: str
    """Its name."""

    x: float
    """Its position along the x axis."""

    y: float
    """Its position along the y axis."""

    across: float = 0.0
    """Half the length of its horizontal bar."""

    up: float = 0.0
    """Half the length of its vertical bar."""

    tint: str = "black"
    """Color of its name."""


def label_points(axis: Any, spots: Sequence[Spot]) -> None:
    """Place the names of points so that they cover as little as possible. A name stands nearest to its own point, or a
    line leads to it; without room it is left out."""
    marks = [_marks(axis, spot) for spot in spots]
    taken: list[_Rectangle] = []
    for number, spot in sorted(enumerate(spots), key=lambda numbered: -numbered[1].y):
        if not spot.name:
            continue
        others = [*marks[:number], *marks[number + 1 :]]
        places = [(offset, _rectangle(marks[number][0], offset, spot.name)) for offset in (*_BESIDE, *_AWAY)]
        costs = [_cost(axis, place, marks[number], others, taken, offset in _AWAY) for offset, place in places]
        if min(costs) < _TOO_MUCH:
            offset, place = places[costs.index(min(costs))]
            taken += [place, *(_dots(place, marks[number][0]) if offset in _AWAY else ())]
            _write(axis, spot, offset)


def _cost(
    axis: Any,
    place: _Rectangle,
    own: Sequence[_Rectangle],
    others: Sequence[Sequence[_Rectangle]],
    taken: Sequence[_Rectangle],
    has_line: bool,
) -> float:
    """How bad a place is for the name of a point, given what is drawn at all points, and names and lines."""
    width, height = _size(axis)
    outside = place[0] < 0 or place[2] > width or place[1] < 0 or place[3] > height
    cost = _TOO_MUCH * (outside + sum(_cross(place, name) for name in taken))
    cost += sum(_cross(place, one) for point in (own, *others) for one in point)
    distance = _distance(place, own[0])
    if not has_line:
        return cost + _NEARER_TO_ANOTHER * any(_distance(place, point[0]) <= distance for point in others)
    dots = _dots(place, own[0])
    cost += _TOO_MUCH * any(_cross(dot, name) for dot in dots for name in taken)
    cost += sum(any(_cross(dot, one) for dot in dots) for point in others for one in point)
    return cost + _LEADER + 0.05 * distance


def _write(axis: Any, spot: Spot, offset: _Offset) -> None:
    """Write the name of a point, with a line to it if they are apart."""
    side = _alignment(offset)
    line = {"arrowstyle": "-", "color": spot.tint, "linewidth": 0.5, "shrinkA": 0.0, "shrinkB": 3.0}
    line["relpos"] = ({"left": 0.0, "center": 0.5, "right": 1.0}[side], 0.0 if offset[1] > 0 else 1.0)
    words = axis.annotate(spot.name, (spot.x, spot.y), offset, textcoords="offset points", ha=side, fontsize=SMALL,
        color=spot.tint, arrowprops=line if offset in _AWAY else None)  # fmt: skip
    words.set_in_layout(False)


def reference_line(axis: Any, name: str, value: float, curves: Sequence[tuple[float, float]]) -> None:
    """A horizontal line, with its name at the end where the curves are farther away. Curves are given by their values
    at both ends."""
    left, right = (min((curve[end] - value for curve in curves), key=abs) for end in (0, 1))
    end, side, nearest = (0.99, "right", right) if abs(right) >= abs(left) else (0.01, "left", left)
    below = nearest > 0 and value > axis.get_ylim()[0] + 0.15 * (axis.get_ylim()[1] - axis.get_ylim()[0])
    axis.axhline(value, color=_GRAY, linestyle="--", linewidth=1.0)
    axis.annotate(name, (end, value), (0, -3 if below else 3), xycoords=("axes fraction", "data"),
        textcoords="offset points", ha=side, va="top" if below else "bottom", fontsize=SMALL, color=_GRAY,
        bbox=_PAPER)  # fmt: skip


def in_two_lines(label: str) -> str:
    """A long label, broken at the space nearest to its middle."""
    spaces = [place for place, letter in enumerate(label) if letter == " "]
    if len(label) <= _LONG or not spaces:
        return label
    middle = min(spaces, key=lambda place: abs(2 * place - len(label)))
    return f"{label[:middle]}\n{label[middle + 1 :]}"


def _size(axis: Any) -> tuple[float, float]:
    """Width and height of a panel in points."""
    scale = 72.0 / axis.figure.dpi
    return float(axis.bbox.width * scale), float(axis.bbox.height * scale)


def _position(axis: Any, x: float, y: float) -> tuple[float, float]:
    """A position in points from the lower left corner of the panel."""
    width, height = _size(axis)
    across, up = axis.transAxes.inverted().transform(axis.transData.transform((x, y)))
    return float(across) * width, float(up) * height


def _alignment(offset: _Offset) -> str:
    """The side of a name that is at its position: the one toward its point."""
    right, up = offset
    return "center" if abs(right) <= 0.4 * abs(up) else "left" if right > 0 else "right"


def _rectangle(mark: _Rectangle, offset: _Offset, name: str) -> _Rectangle:
    """The space of a name at this offset from the middle of a mark."""
    width = _LETTER * len(name)
    x, y = _middle(mark)
    left = x + offset[0] - {"left": 0.0, "center": width / 2, "right": width}[_alignment(offset)]
    return left, y + offset[1], left + width, y + offset[1] + _LINE


def _marks(axis: Any, spot: Spot) -> tuple[_Rectangle, ...]:
    """What is drawn at a point: its mark and both bars."""
    x, y = _position(axis, spot.x, spot.y)
    left, low = _position(axis, spot.x - spot.across, spot.y - spot.up)
    right, high = _position(axis, spot.x + spot.across, spot.y + spot.up)
    return (x - _MARK, y - _MARK, x + _MARK, y + _MARK), (x, low, x, high), (left, y, right, y)


def _middle(mark: _Rectangle) -> tuple[float, float]:
    return (mark[0] + mark[2]) / 2, (mark[1] + mark[3]) / 2


def _dots(place: _Rectangle, mark: _Rectangle) -> list[_Rectangle]:
    """Dots along the line from a name to its point."""
    x, y = _middle(mark)
    right, up = min(max(x, place[0]), place[2]) - x, min(max(y, place[1]), place[3]) - y
    dots = ((x + share / 10 * right, y + share / 10 * up) for share in range(1, 10))
    return [(*dot, *dot) for dot in dots]


def _distance(first: _Rectangle, second: _Rectangle) -> float:
    """How far apart two rectangles are."""
    across = max(first[0] - second[2], second[0] - first[2], 0.0)
    up = max(first[1] - second[3], second[1] - first[3], 0.0)
    return math.hypot(across, up)


def _cross(first: _Rectangle, second: _Rectangle) -> bool:
    return first[0] <= second[2] and second[0] <= first[2] and first[1] <= second[3] and second[1] <= first[3]
