"""Predicates about a curve through the points of cells: a column against what their views share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from vantage.studies.lab.judging.contrasts import SeedContrast
from vantage.studies.lab.judging.predicates import AllContrasts, Values, require_numbers

__all__ = ["Curve", "MostlyLeftOfTop", "NearerToTop", "ReverseU", "VariesLess", "parabola", "top"]


@dataclass(frozen=True)
class Curve:
    """For each seed, the least-squares parabola of the column over another column."""

    cells: tuple[str, ...]
    """Four cells or more, so that three coefficients are determined."""

    over: str
    """The other column, such as "I_NCE"."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The cells, and their other column."""
        return (*self.cells, *self.over_terms(self.cells))

    def over_terms(self, cells: tuple[str, ...]) -> tuple[str, ...]:
        """The terms of the other column for some cells."""
        return tuple(f"{cell} @ {self.over}" for cell in cells)

    def points(self, values: Values) -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
        """For each seed, the numbers of the other column and those of the column."""
        x = [require_numbers(values, term) for term in self.over_terms(self.cells)]
        y = [require_numbers(values, cell) for cell in self.cells]
        return zip(zip(*x, strict=True), zip(*y, strict=True), strict=True)

    def from_top(self, values: Values, cells: tuple[str, ...]) -> list[tuple[float, ...]]:
        """For each seed, how far to the right some cells lie of where the parabola is highest."""
        rows = zip(*(require_numbers(values, term) for term in self.over_terms(cells)), strict=True)
        tops = (top(x, y) for x, y in self.points(values))
        return [tuple(x - at for x in row) for row, at in zip(rows, tops, strict=True)]


@dataclass(frozen=True)
class ReverseU(AllContrasts):
    """A curve rises at its left end and falls at its right one, so that it is concave and its top lies inside."""

    curve: Curve
    """The curve."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Those of the curve."""
        return self.curve.terms

    def contrasts(self, values: Values) -> tuple[SeedContrast, ...]:
        """The parabola's slope at the smallest value of the other column, and its fall at the largest."""
        slopes = [_slopes_at_ends(x, y) for x, y in self.curve.points(values)]
        name = f"slope at the {{}} {self.curve.over}"
        return (
            SeedContrast(name.format("least"), tuple(left for left, _ in slopes)),
            SeedContrast("−" + name.format("largest"), tuple(-right for _, right in slopes)),
        )


@dataclass(frozen=True)
class NearerToTop(AllContrasts):
    """Along the other column, some cells are nearer to the top of a curve, on average, than others."""

    curve: Curve
    """The curve."""

    nearer: tuple[str, ...]
    """The cells that are nearer."""

    farther: tuple[str, ...]
    """The cells that are farther away."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Those of the curve, and the other column of the cells."""
        return (*self.curve.terms, *self.curve.over_terms((*self.nearer, *self.farther)))

    def contrasts(self, values: Values) -> tuple[SeedContrast, ...]:
        """The difference of the two mean distances."""
        near, far = (self.curve.from_top(values, cells) for cells in (self.nearer, self.farther))
        gaps = tuple(fmean(map(abs, b)) - fmean(map(abs, a)) for a, b in zip(near, far, strict=True))
        return (SeedContrast("distance from the top, farther − nearer", gaps),)


@dataclass(frozen=True)
class MostlyLeftOfTop(AllContrasts):
    """More than half of some cells are left of the top of a curve."""

    curve: Curve
    """The curve."""

    cells: tuple[str, ...]
    """The cells."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Those of the curve, and the other column of the cells."""
        return (*self.curve.terms, *self.curve.over_terms(self.cells))

    def contrasts(self, values: Values) -> tuple[SeedContrast, ...]:
        """The share of the cells, less a half."""
        shares = (fmean(one < 0 for one in each) for each in self.curve.from_top(values, self.cells))
        return (SeedContrast("share left of the top − 0.5", tuple(share - 0.5 for share in shares), bounded=True),)


@dataclass(frozen=True)
class VariesLess(AllContrasts):
    """Some cells differ less among themselves than others, by their standard deviation."""

    less: tuple[str, ...]
    """The cells that differ less."""

    more: tuple[str, ...]
    """The cells that differ more."""

    @property
    def terms(self) -> tuple[str, ...]:
        """All cells."""
        return (*self.less, *self.more)

    def contrasts(self, values: Values) -> tuple[SeedContrast, ...]:
        """The difference of the two standard deviations."""
        spreads = [
            [stdev(each) for each in zip(*(require_numbers(values, cell) for cell in cells), strict=True)]
            for cells in (self.less, self.more)
        ]
        gaps = tuple(b - a for a, b in zip(*spreads, strict=True))
        return (SeedContrast("SD over cells, more − less", gaps),)


def parabola(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float]:
    """The coefficients a, b, c of the least-squares parabola y = a x² + b x + c."""
    a, b, c = np.polyfit(x, y, 2)
    return float(a), float(b), float(c)


def top(x: Sequence[float], y: Sequence[float]) -> float:
    """Where, between the least x and the largest, the least-squares parabola is highest."""
    a, b, c = parabola(x, y)
    low, high = min(x), max(x)
    inside = [-b / (2 * a)] if a < 0 and low < -b / (2 * a) < high else []
    return max([*inside, low, high], key=lambda at: (a * at + b) * at + c)


def _slopes_at_ends(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    a, b, _ = parabola(x, y)
    return 2 * a * min(x) + b, 2 * a * max(x) + b
