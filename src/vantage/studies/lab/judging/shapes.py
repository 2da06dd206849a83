"""Predicates about the shape of several cells: a peak inside, a rank correlation, one gain or peak above another."""

from collections.abc import Sequence
from dataclasses import dataclass

from vantage.studies.lab.judging.contrasts import SeedContrast
from vantage.studies.lab.judging.predicates import AllContrasts, Values, combine, require_numbers

__all__ = ["Correlation", "Gains", "InteriorPeak", "SharperPeak", "spearman"]


@dataclass(frozen=True)
class InteriorPeak:
    """Along an ordered row of cells, at least one inner cell is above both ends."""

    cells: tuple[str, ...]
    """Three cells or more, ordered by what varies."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The cells."""
        return self.cells

    def contrasts(self, values: Values) -> tuple[SeedContrast, ...]:
        """Each inner cell against both ends."""
        ends = (self.cells[0], self.cells[-1])
        pairs = [(inner, end) for inner in self.cells[1:-1] for end in ends]
        return tuple(SeedContrast(f"{a} − {b}", combine(values, {a: 1.0, b: -1.0})) for a, b in pairs)

    def overall_verdict(self, verdicts: Sequence[str]) -> str:
        """Supported by one inner cell above both ends, refuted if one end is above every inner cell."""
        pairs = list(zip(verdicts[::2], verdicts[1::2], strict=True))
        if any(set(pair) == {"supported"} for pair in pairs):
            return "supported"
        ends = list(zip(*pairs, strict=True))
        return "refuted" if any(set(end) == {"refuted"} for end in ends) else "undecided"


@dataclass(frozen=True)
class Correlation(AllContrasts):
    """Spearman's ρ over cells, between the column and what varies (or another column), has a certain sign."""

    cells: tuple[str, ...]
    """Three cells or more."""

    against: tuple[float, ...] | str
    """What varies, as a number for each cell; or the name of another column."""

    negative: bool = False
    """Whether ρ should be below 0 instead of above."""

    bases: tuple[str, ...] = ()
    """A base for each cell, whose number is subtracted first; empty if nothing is subtracted."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The cells, their bases, and their other column if there is one."""
        return (*self.cells, *self.bases, *self._others)

    @property
    def _others(self) -> tuple[str, ...]:
        return tuple(f"{cell} @ {self.against}" for cell in self.cells) if isinstance(self.against, str) else ()

    def contrasts(self, values: Values) -> tuple[SeedContrast, ...]:
        """ρ of each seed."""
        rows = [require_numbers(values, cell) for cell in self.cells]
        if self.bases:
            pairs = zip(self.cells, self.bases, strict=True)
            rows = [combine(values, {cell: 1.0, base: -1.0}) for cell, base in pairs]
        if isinstance(self.against, str):
            other = [require_numbers(values, term) for term in self._others]
        else:
            other = [(number,) * len(rows[0]) for number in self.against]
        sign = -1.0 if self.negative else 1.0
        each = zip(zip(*rows, strict=True), zip(*other, strict=True), strict=True)
        x_name = self.against if isinstance(self.against, str) else "what varies"
        correlations = tuple(sign * spearman(y, x) for y, x in each)
        return (SeedContrast(f"{'−' * self.negative}ρ with {x_name}", correlations, bounded=True),)


@dataclass(frozen=True)
class Gains(AllContrasts):
    """The gain of one cell over another is larger than the gain of a third cell over a fourth."""

    larger: tuple[str, str]
    """Cell and base of the larger gain."""

    smaller: tuple[str, str]
    """Cell and base of the smaller gain."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The four cells."""
        return (*self.larger, *self.smaller)

    def contrasts(self, values: Values) -> tuple[SeedContrast, ...]:
        """Their difference."""
        rows = [require_numbers(values, term) for term in self.terms]
        gap = tuple((a - b) - (c - d) for a, b, c, d in zip(*rows, strict=True))
        (a, b), (c, d) = self.larger, self.smaller
        return (SeedContrast(f"({a} − {b}) − ({c} − {d})", gap),)


@dataclass(frozen=True)
class SharperPeak(AllContrasts):
    """A cell leads the mean of its two neighbors by more than another cell leads that of its own."""

    sharper: tuple[str, ...]
    """Left neighbor, peak and right neighbor."""

    flatter: tuple[str, ...]
    """The same of the other peak."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The six cells."""
        return (*self.sharper, *self.flatter)

    def contrasts(self, values: Values) -> tuple[SeedContrast, ...]:
        """The difference of the two leads."""
        weights = (-0.5, 1.0, -0.5, 0.5, -1.0, 0.5)
        gap = combine(values, dict(zip(self.terms, weights, strict=True)))
        return (SeedContrast(f"lead of {self.sharper[1]} − lead of {self.flatter[1]}", gap),)


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation, with mean ranks for ties; 0 if one side does not vary."""
    from scipy.stats import rankdata  # slow to import

    a, b = rankdata(first), rankdata(second)
    a, b = a - a.mean(), b - b.mean()
    size = float((a @ a) * (b @ b)) ** 0.5
    return float(a @ b) / size if size else 0.0
