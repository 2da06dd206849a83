"""What a claim says of the cells of an entry, as values that turn cells into contrasts, for seeds and a paper alike.

A term names a cell, or a cell and another column than the claim's: `"JCL"`, `"JCL @ top-5"`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from vantage.errors import UserError
from vantage.studies.lab.judgement import Contrast

__all__ = ["Above", "Beats", "Close", "Every", "Highest", "Order", "Predicate", "Values", "combined", "needed"]

Values = Callable[[str], tuple[float, ...] | None]
"""The numbers of a term, one for each seed (of a paper one); none where there are none."""


@runtime_checkable
class Predicate(Protocol):
    """A statement about cells."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The cells that it is about."""
        ...

    def contrasts(self, values: Values) -> tuple[Contrast, ...]:
        """What has to lie above 0, or within ±δ."""
        ...

    def decided(self, verdicts: Sequence[str]) -> str:
        """The verdict of the whole, from those of its contrasts."""
        ...


class Every:
    """Statements of which every contrast has to hold, and any one that is refuted refutes the whole."""

    def decided(self, verdicts: Sequence[str]) -> str:
        """Supported by all, refuted by one."""
        if "refuted" in verdicts:
            return "refuted"
        return "supported" if verdicts and set(verdicts) == {"supported"} else "undecided"


@dataclass(frozen=True)
class Beats(Every):
    """One cell is above another, by more than `by` (in the unit of the column)."""

    first: str
    """The cell that is above."""

    second: str
    """The cell that is below."""

    by: float = 0.0
    """By how much at least."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Both."""
        return (self.first, self.second)

    def contrasts(self, values: Values) -> tuple[Contrast, ...]:
        """Their difference."""
        gap = combined(values, {self.first: 1.0, self.second: -1.0}, -self.by)
        return (Contrast(f"{self.first} − {self.second}{f' − {self.by:g}' if self.by else ''}", gap),)


@dataclass(frozen=True)
class Above(Every):
    """A cell lies above a number, or above a number of times another cell; `below` turns it around."""

    cell: str
    """The cell."""

    number: float
    """The number, or the factor."""

    times: str = ""
    """The cell that the number is a factor of; empty: none."""

    below: bool = False
    """Whether the cell lies below instead."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The cells."""
        return (self.cell, self.times) if self.times else (self.cell,)

    def contrasts(self, values: Values) -> tuple[Contrast, ...]:
        """How far above."""
        sign = -1.0 if self.below else 1.0
        parts = {self.cell: sign} | ({self.times: -sign * self.number} if self.times else {})
        gap = combined(values, parts, 0.0 if self.times else -sign * self.number)
        right = f"{self.number:g} × {self.times}" if self.times else f"{self.number:g}"
        return (Contrast(f"{right} − {self.cell}" if self.below else f"{self.cell} − {right}", gap),)


@dataclass(frozen=True)
class Close(Every):
    """All pairs of some cells are within ±δ of each other."""

    cells: tuple[str, ...]
    """Two cells or more."""

    delta: float
    """δ, in the unit of the column."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The cells."""
        return self.cells

    def contrasts(self, values: Values) -> tuple[Contrast, ...]:
        """Every pair."""
        pairs = [(a, b) for place, a in enumerate(self.cells) for b in self.cells[place + 1 :]]
        return tuple(
            Contrast(f"{a} − {b} within ±{self.delta:g}", combined(values, {a: 1.0, b: -1.0}), self.delta)
            for a, b in pairs
        )


@dataclass(frozen=True)
class Order(Every):
    """Cells from the lowest to the highest: every neighbor is above the one before."""

    cells: tuple[str, ...]
    """Two cells or more."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The cells."""
        return self.cells

    def contrasts(self, values: Values) -> tuple[Contrast, ...]:
        """Neighbors."""
        pairs = zip(self.cells, self.cells[1:], strict=False)
        return tuple(Contrast(f"{b} − {a}", combined(values, {b: 1.0, a: -1.0})) for a, b in pairs)


@dataclass(frozen=True)
class Highest(Every):
    """One cell is above every other one."""

    cell: str
    """The highest."""

    others: tuple[str, ...]
    """The others."""

    @property
    def terms(self) -> tuple[str, ...]:
        """All cells."""
        return (self.cell, *self.others)

    def contrasts(self, values: Values) -> tuple[Contrast, ...]:
        """The lead over each."""
        return tuple(contrast for other in self.others for contrast in Beats(self.cell, other).contrasts(values))


def combined(values: Values, parts: dict[str, float], plus: float = 0.0) -> tuple[float, ...]:
    """A sum of terms with factors, for each seed."""
    rows = [tuple(factor * value for value in needed(values, term)) for term, factor in parts.items()]
    return tuple(sum(each) + plus for each in zip(*rows, strict=True))


def needed(values: Values, term: str) -> tuple[float, ...]:
    """The numbers of a term. Raises `UserError` where there are none."""
    numbers = values(term)
    if numbers is None:
        raise UserError(f"{term} has no numbers")
    return numbers
