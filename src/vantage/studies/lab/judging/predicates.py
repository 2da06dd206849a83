"""Statements about the cells of an entry. Each turns the numbers of cells, ours or a paper's, into contrasts.

A term names a cell, or a cell and a column other than the claim's: `"JCL"`, `"JCL @ top-5"`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from vantage.errors import UserError
from vantage.studies.lab.judging.contrasts import SeedContrast

__all__ = [
    "Above",
    "Beats",
    "Close",
    "AllContrasts",
    "Highest",
    "Order",
    "Predicate",
    "Values",
    "combine",
    "require_numbers",
]

Values = Callable[[str], tuple[float, ...] | None]
"""The numbers of a term: one for each seed, or a single one from a paper; None if there are none."""


@runtime_checkable
class Predicate(Protocol):
    """A statement about cells."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The cells that it is about."""
        ...

    def contrasts(self, values: Values) -> tuple[SeedContrast, ...]:
        """The contrasts that must lie above 0, or within ±δ of it."""
        ...

    def overall_verdict(self, verdicts: Sequence[str]) -> str:
        """The verdict on the predicate, from the verdicts on its contrasts."""
        ...


class AllContrasts:
    """Statements that need every contrast to hold; a single refuted contrast refutes the statement."""

    def overall_verdict(self, verdicts: Sequence[str]) -> str:
        """Supported if all contrasts are, refuted if one is."""
        if "refuted" in verdicts:
            return "refuted"
        return "supported" if verdicts and set(verdicts) == {"supported"} else "undecided"


@dataclass(frozen=True)
class Beats(AllContrasts):
    """One cell is above another, by more than `by` (in the unit of the column)."""

    first: str
    """The cell that is above."""

    second: str
    """The cell that is below."""

    by: float = 0.0
    """By how much at least."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Both cells."""
        return (self.first, self.second)

    def contrasts(self, values: Values) -> tuple[SeedContrast, ...]:
        """Their difference."""
        gap = combine(values, {self.first: 1.0, self.second: -1.0}, -self.by)
        by = f" {'−' if self.by > 0 else '+'} {abs(self.by):g}" if self.by else ""
        return (SeedContrast(f"{self.first} − {self.second}{by}", gap),)


@dataclass(frozen=True)
class Above(AllContrasts):
    """A cell lies above a number, or above a multiple of another cell; `below` reverses this."""

    cell: str
    """The cell."""

    number: float
    """The number, or the factor."""

    times: str = ""
    """The cell that is multiplied by the number; empty if the number stands alone."""

    below: bool = False
    """Whether the cell lies below instead."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The cells."""
        return (self.cell, self.times) if self.times else (self.cell,)

    def contrasts(self, values: Values) -> tuple[SeedContrast, ...]:
        """How far the cell is above."""
        sign = -1.0 if self.below else 1.0
        parts = {self.cell: sign} | ({self.times: -sign * self.number} if self.times else {})
        gap = combine(values, parts, 0.0 if self.times else -sign * self.number)
        right = f"{self.number:g} × {self.times}" if self.times else f"{self.number:g}"
        return (SeedContrast(f"{right} − {self.cell}" if self.below else f"{self.cell} − {right}", gap),)


@dataclass(frozen=True)
class Close(AllContrasts):
    """All pairs of some cells are within ±δ of each other."""

    cells: tuple[str, ...]
    """Two cells or more."""

    delta: float
    """δ, in the unit of the column."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The cells."""
        return self.cells

    def contrasts(self, values: Values) -> tuple[SeedContrast, ...]:
        """The difference of every pair."""
        pairs = [(a, b) for place, a in enumerate(self.cells) for b in self.cells[place + 1 :]]
        return tuple(
            SeedContrast(f"{a} − {b} within ±{self.delta:g}", combine(values, {a: 1.0, b: -1.0}), self.delta)
            for a, b in pairs
        )


@dataclass(frozen=True)
class Order(AllContrasts):
    """Cells from the lowest to the highest: each is above the one before it."""

    cells: tuple[str, ...]
    """Two cells or more."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The cells."""
        return self.cells

    def contrasts(self, values: Values) -> tuple[SeedContrast, ...]:
        """The differences of neighbors."""
        pairs = zip(self.cells, self.cells[1:], strict=False)
        return tuple(SeedContrast(f"{b} − {a}", combine(values, {b: 1.0, a: -1.0})) for a, b in pairs)


@dataclass(frozen=True)
class Highest(AllContrasts):
    """One cell is above every other one."""

    cell: str
    """The highest."""

    others: tuple[str, ...]
    """The others."""

    @property
    def terms(self) -> tuple[str, ...]:
        """All cells."""
        return (self.cell, *self.others)

    def contrasts(self, values: Values) -> tuple[SeedContrast, ...]:
        """The lead over each of the others."""
        return tuple(contrast for other in self.others for contrast in Beats(self.cell, other).contrasts(values))


def combine(values: Values, parts: dict[str, float], plus: float = 0.0) -> tuple[float, ...]:
    """A linear combination of terms, for each seed."""
    rows = [tuple(factor * value for value in require_numbers(values, term)) for term, factor in parts.items()]
    return tuple(sum(each) + plus for each in zip(*rows, strict=True))


def require_numbers(values: Values, term: str) -> tuple[float, ...]:
    """The numbers of a term. Raises `UserError` if there are none."""
    numbers = values(term)
    if numbers is None:
        raise UserError(f"{term} has no numbers")
    return numbers
