"""What lies on the axes of an entry's picture, as data."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Panel"]

_NAMES = {
    "linear-cached": "linear classifier, top-1 (%)",
    "knn": "nearest neighbors, top-1 (%)",
    "I_NCE": "I_NCE on test images (nats)",
}
"""Measures as an axis names them."""


@dataclass(frozen=True)
class Panel:
    """One panel of a picture. A term names a cell, or a cell and a measure of its own, as in predicates."""

    by: str
    """The measure on the upright axis; of terms that name none."""

    curves: Mapping[str, Mapping[str, float | int] | tuple[str, ...]]
    """Terms of each curve by its name. With numbers: where each stands along the axis. Without: a row for each term,
    or, with `against`, a point where that measure puts it. Lines join the seeds of a curve."""

    across: str = ""
    """Name of the other axis, with its unit; not needed for rows and `against`."""

    against: str = ""
    """The measure on the other axis, such as I_NCE; empty: numbers or rows."""

    up: str = ""
    """Name of what is measured, with its unit; empty: that of the measure."""

    columns: tuple[str, ...] = ()
    """The paper's columns that stand beside."""

    theirs: str = ""
    """What the paper's columns measure, with its unit."""

    together: bool = False
    """Whether the paper measured the same in the same unit: its points then stand in ours."""

    lines: tuple[str, ...] = ()
    """Terms that are lines across, such as the base that the others continue; not of rows."""

    log: bool = False
    """Whether what is measured lies on a logarithmic axis."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Every term of its curves and lines."""
        return (*(term for curve in self.curves.values() for term in curve), *self.lines)

    def name(self, term: str) -> str:
        """A term as a row names it: its cell, or its measure where all are of one cell."""
        cell, _, measure = term.partition(" @ ")
        return measure if measure and len({one.partition(" @ ")[0] for one in self.terms}) == 1 else cell

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of its rows; none along an axis."""
        return () if self.along else tuple(dict.fromkeys(map(self.name, self.terms)))

    @property
    def measured(self) -> str:
        """What is measured, with its unit."""
        return self.up or _NAMES.get(self.by, self.by)

    @property
    def along(self) -> str:
        """Name of the other axis; empty for rows."""
        return self.across or _NAMES.get(self.against, self.against)

    @property
    def axes(self) -> str:
        """Both axes in words."""
        return f"{self.measured} by {self.along}" if self.along else self.measured
