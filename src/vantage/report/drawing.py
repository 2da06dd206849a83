"""Charts as inline SVG, without a script, in the colors of the page."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

__all__ = ["HEIGHT", "WIDTH", "Band", "Line", "Zone", "chart", "ticks"]

Number = int | float

WIDTH, HEIGHT = 360, 220
"""Size of a chart in SVG units; the page scales it."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 12, 30
"""Margins around the axes, in SVG units."""
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Line:
    """One curve."""

    name: str
    """Name of the run, or of a branch."""
    points: Sequence[tuple[Number, Number]]
    """Finite points (x, y), in order of x."""
    number: int = 0
    """Position of the run on the page, or of a branch in its chart, which determines color and dashes."""


@dataclass(frozen=True)
class Band:
    """The range of several curves, as an area behind the lines."""

    name: str
    """What it is the range of."""
    points: Sequence[tuple[Number, Number, Number]]
    """Finite points (x, lowest, highest), in order of x."""
    number: int = 0
    """Determines its color, as a line's number does."""


@dataclass(frozen=True)
class Zone:
    """A highlighted band of values."""

    low: Number
    """Lower end."""
    high: Number
    """Upper end."""
    name: str
    """What the band means."""


def chart(
    title: str,
    lines: Sequence[Line],
    across: str,
    zone: Zone | None = None,
    log: bool = False,
    band: Band | None = None,
) -> Markup:
    """A chart of curves over common axes, which also include the zone and the band. With `log`, both axes are
    logarithmic, points at 0 or below are left out, and the zone is given in logarithms (there is no band then). Empty
    if no line has a point."""
    scaled_lines = [_scale(line, log) for line in lines]
    scaled_lines = [line for line in scaled_lines if line.points]
    if not scaled_lines:
        return Markup("")
    across_axis = _Axis.around([x for line in scaled_lines for x, _ in line.points], _LEFT, WIDTH - _RIGHT, 0.0)
    heights = [y for line in scaled_lines for _, y in line.points] + ([zone.low, zone.high] if zone else [])
    heights += [y for _, *ends in band.points for y in ends] if band else []
    up_axis = _Axis.around(heights, HEIGHT - _BOTTOM, _TOP, 0.06, None if zone is None else zone.low)
    parts = [Markup(f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">')]
    parts.append(Markup("<title>{}</title>").format(_in_words(title, lines, across, band)))
    if zone is not None:
        parts.append(_zone(zone, up_axis))
    parts += _axes(across_axis, up_axis, across, log)
    if band is not None and band.points:
        parts.append(_area(band, across_axis, up_axis))
    parts += (_curve(line, across_axis, up_axis) for line in scaled_lines)
    if zone is not None:  # over the curves, which may cross it
        parts.append(_zone_name(zone, up_axis))
    parts.append(Markup("</svg>"))
    return Markup("").join(parts)


def ticks(low: Number, high: Number, most: int = 5) -> list[float]:
    """At most `most` round numbers from `low` to `high`: multiples of 1, 2 or 5 times a power of ten."""
    if high <= low:
        return [float(low)]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(
        size * power
        for size in (1, 2, 5, 10, 20)
        if math.floor(high / (size * power)) - math.ceil(low / (size * power)) < most
    )
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


@dataclass(frozen=True)
class _Axis:
    low: Number
    high: Number
    first: Number
    last: Number

    @classmethod
    def around(
        cls, values: Sequence[Number], first: Number, last: Number, margin: float, start: Number | None = None
    ) -> "_Axis":
        """An axis with room on both sides of the values; with `start`, none below it."""
        low, high = min(values), max(values)
        room = (high - low) * margin or (0.0 if high > low else max(abs(low) * 0.1, 0.5))
        return cls(low if low == start else low - room, high + room, first, last)

    def __call__(self, value: Number) -> float:
        return self.first + (value - self.low) / (self.high - self.low) * (self.last - self.first)


def _scale(line: Line, log: bool) -> Line:
    if not log:
        return line
    points = [(math.log10(x), math.log10(y)) for x, y in line.points if x > 0 and y > 0]
    return Line(line.name, points, line.number)


def _zone(zone: Zone, axis: _Axis) -> Markup:
    top, bottom = axis(zone.high), axis(zone.low)
    width, height = WIDTH - _LEFT - _RIGHT, bottom - top
    return Markup(f'<rect class="zone" x="{_LEFT}" y="{top:.1f}" width="{width}" height="{height:.1f}"/>')


def _zone_name(zone: Zone, axis: _Axis) -> Markup:
    y = min(axis(zone.low) - 4, axis(zone.high) + 11)
    return Markup('<text class="zone-name" x="{}" y="{:.1f}">{}</text>').format(_LEFT + 4, y, zone.name)


def _axes(across: _Axis, up: _Axis, name: str, log: bool) -> Iterator[Markup]:
    for value in _marks(up, log):
        y = up(value)
        yield Markup(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        yield _text(_LEFT - 5, y + 4, _number(value, log), "end")
    for value in _marks(across, True):
        yield _text(across(value), HEIGHT - _BOTTOM + 14, _number(value, log), "middle")
    yield Markup(f'<path class="axis" d="M{_LEFT} {_TOP}V{HEIGHT - _BOTTOM}H{WIDTH - _RIGHT}"/>')
    yield _text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 3, name, "middle")


def _marks(axis: _Axis, whole: bool) -> list[float]:
    """Where to label an axis: if `whole`, at whole numbers only, if there are any."""
    marks = ticks(axis.low, axis.high)
    return [mark for mark in marks if mark == round(mark)] or marks if whole else marks


def _curve(line: Line, across: _Axis, up: _Axis) -> Markup:
    places = [(across(x), up(y)) for x, y in line.points]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    x, y = places[-1]
    kind = f"run-{line.number % 6}"
    name = Markup("<title>{}</title>").format(line.name)
    dot = Markup(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
    return Markup(f'<g class="curve {kind}">') + name + Markup(f'<path d="{path}"/>') + dot + Markup("</g>")


def _area(band: Band, across: _Axis, up: _Axis) -> Markup:
    above = [f"{across(x):.1f} {up(high):.1f}" for x, _, high in band.points]
    below = [f"{across(x):.1f} {up(low):.1f}" for x, low, _ in reversed(band.points)]
    name = Markup("<title>{}</title>").format(band.name)
    path = Markup('<path d="M{}Z"/>').format("L".join([*above, *below]))
    return Markup(f'<g class="band run-{band.number % 6}">') + name + path + Markup("</g>")


def _text(x: Number, y: Number, words: str, anchor: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(x, y, anchor, words)


def _number(value: Number, log: bool) -> str:
    if not log:
        return f"{round(value, 10):,.4g}".replace("-", "−")
    if value == round(value) and not -3 <= value <= 3:
        return "10" + str(round(value)).translate(_RAISED)
    return f"{10**value:.3g}"


def _in_words(title: str, lines: Sequence[Line], across: str, band: Band | None) -> str:
    """The chart in words, for readers who cannot see it."""
    each = [
        f"{line.name}: from {line.points[0][1]:.4g} at {across} {line.points[0][0]:g} "
        f"to {line.points[-1][1]:.4g} at {line.points[-1][0]:g}"
        for line in lines
        if line.points
    ]
    if band is not None and band.points:
        ends = (f"{low:.4g} to {high:.4g} at {across} {x:g}" for x, low, high in (band.points[0], band.points[-1]))
        each.append(f"{band.name}: {', '.join(ends)}")
    return f"{title}. {'; '.join(each)}"
