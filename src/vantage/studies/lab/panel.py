"""The panels of an entry's picture, as data."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Panel"]

_NAMES = {
    "linear-cached": "linear classifier, top-1 (%)",
    "knn": "nearest neighbors, top-1 (%)",
    "I_NCE": "I_NCE on test images (nats)",
    "mIoU": "decoder for mosaics, mean IoU (%)",
}
"""Axis labels of measures."""


@dataclass(frozen=True)
class Panel:
    """One panel of a picture. A term names a cell, or a cell and a measure of its own, as in predicates."""

    measure: str
    """The measure on the y axis, for terms that do not name one."""

    curves: Mapping[str, Mapping[str, float | int] | tuple[str, ...]]
    """The terms of each curve, by the curve's name. A number is the term's position along the x axis. Without numbers,
    each term has its own row or, with `x_measure`, its x is that measure. Lines connect the points of a seed."""

    x_label: str = ""
    """Label of the x axis, with its unit; not needed for rows or with `x_measure`."""

    x_measure: str = ""
    """The measure on the x axis, such as I_NCE; empty for numbers or rows."""

    y_label: str = ""
    """Label of the y axis, with its unit; empty for the usual label of the measure."""

    paper_columns: tuple[str, ...] = ()
    """Columns of the paper to show next to ours."""

    paper_label: str = ""
    """What the paper's columns measure, with the unit."""

    paper_shares_axes: bool = False
    """Whether the paper measured the same quantity in the same unit, so that its points are drawn on our axes."""

    reference_lines: tuple[str, ...] = ()
    """Terms drawn as horizontal lines, such as the base that the others continue; not for rows."""

    log: bool = False
    """Whether the measure's axis is logarithmic."""

    @property
    def terms(self) -> tuple[str, ...]:
        """Every term of its curves and lines."""
        return (*(term for curve in self.curves.values() for term in curve), *self.reference_lines)

    def name(self, term: str) -> str:
        """The name of a term in a row: its cell, or its measure if all terms are of one cell."""
        cell, _, measure = term.partition(" @ ")
        return measure if measure and len({one.partition(" @ ")[0] for one in self.terms}) == 1 else cell

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of the rows; empty if there is an x axis."""
        return () if self.x_axis else tuple(dict.fromkeys(map(self.name, self.terms)))

    @property
    def y_axis(self) -> str:
        """Label of the y axis, with its unit."""
        return self.y_label or _NAMES.get(self.measure, self.measure)

    @property
    def x_axis(self) -> str:
        """Label of the x axis; empty for rows."""
        return self.x_label or _NAMES.get(self.x_measure, self.x_measure)

    @property
    def axes(self) -> str:
        """Both axes in words."""
        return f"{self.y_axis} by {self.x_axis}" if self.x_axis else self.y_axis
