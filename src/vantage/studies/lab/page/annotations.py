"""Words in the panels of an entry's picture: names next to points, reference lines with their names, long labels."""

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
_SIDES = (
    (6.0, 3.0, "left"),
    (-6.0, 3.0, "right"),
    (6.0, -9.0, "left"),
    (-6.0, -9.0, "right"),
    (0.0, 7.0, "center"),
    (0.0, -14.0, "center"),
)
"""Where a name may stand: offset from its point in points, and alignment."""

_Rectangle = tuple[float, float, float, float]


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
    """Place names next to their points so that they cover as little as possible; a name without room is left out."""
    ink = [mark for spot in spots for mark in _marks(axis, spot)]
    names: list[_Rectangle] = []
    width, height = _size(axis)
    for spot in sorted(spots, key=lambda spot: -spot.y):
        x, y = _position(axis, spot.x, spot.y)
        choices = []
        for order, (right, up, alignment) in enumerate(_SIDES):
            place = _rectangle(x + right, y + up, alignment, spot.name)
            outside = place[0] < 0 or place[2] > width or place[1] < 0 or place[3] > height
            crossings = sum(_cross(place, other) for other in names)
            choices.append((100 * crossings + 100 * outside + sum(_cross(place, one) for one in ink), order, place))
        cost, order, place = min(choices)
        if cost < 100:
            right, up, alignment = _SIDES[order]
            names.append(place)
            words = axis.annotate(spot.name, (spot.x, spot.y), (right, up), textcoords="offset points", ha=alignment,
                fontsize=SMALL, color=spot.tint)  # fmt: skip
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


def _rectangle(x: float, y: float, alignment: str, name: str) -> _Rectangle:
    width = _LETTER * len(name)
    left = x - {"left": 0.0, "center": width / 2, "right": width}[alignment]
    return left, y, left + width, y + _LINE


def _marks(axis: Any, spot: Spot) -> tuple[_Rectangle, ...]:
    """What is drawn at a point: its mark and both bars."""
    x, y = _position(axis, spot.x, spot.y)
    left, low = _position(axis, spot.x - spot.across, spot.y - spot.up)
    right, high = _position(axis, spot.x + spot.across, spot.y + spot.up)
    return (x - _MARK, y - _MARK, x + _MARK, y + _MARK), (x, low, x, high), (left, y, right, y)


def _cross(first: _Rectangle, second: _Rectangle) -> bool:
    return first[0] <= second[2] and second[0] <= first[2] and first[1] <= second[3] and second[1] <= first[3]
