"""Tables: one value that is written as plain lines, Markdown or LaTeX, rows of plain values as CSV, and means over
repetitions."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

__all__ = ["Mean", "Row", "Table", "align", "csv_of", "csv_text"]

Row = Mapping[str, str | int | float | None]
"""A row of plain values by column; `None` if there is no value."""

_LATEX = {"_": "\\_", "%": "\\%", "&": "\\&", "#": "\\#"}


@dataclass(frozen=True)
class Table:
    """A head and rows of cells, as people read them."""

    head: tuple[str, ...]
    """Names of the columns."""

    rows: tuple[tuple[str, ...], ...]
    """Cells of each row; – if there is no value."""

    left: tuple[int, ...] = (0,)
    """Columns of words, which are aligned to the left; the others are numbers and are aligned to the right."""

    bold: frozenset[tuple[int, int]] = frozenset()
    """Row and column of each cell in bold, in Markdown and LaTeX."""

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Table":
        """Rows of plain values, all with the columns of the first."""
        names = tuple(rows[0]) if rows else ()
        left = tuple(number for number, name in enumerate(names) if all(isinstance(row[name], str) for row in rows))
        cells = tuple(tuple(_words(row[name]) for name in names) for row in rows)
        return cls(tuple(name.replace("_", " ") for name in names), cells, left)

    def lines(self) -> list[str]:
        """A line for the head and each row, for a terminal."""
        return ["  ".join(line).rstrip() for line in _pad((self.head, *self.rows), self.left)]

    def markdown(self, padded: bool = True) -> str:
        """For documents, without a line break at the end. Cells are padded to the width of their column, unless they
        are sentences."""
        rows = [
            tuple(f"**{cell}**" if (place, column) in self.bold else cell for column, cell in enumerate(row))
            for place, row in enumerate(self.rows)
        ]
        cells = [tuple(cell.replace("|", "\\|") for cell in row) for row in (self.head, *rows)]
        head, *below = _pad(cells, range(len(self.head)), least=3) if padded else cells
        widths = [len(cell) if padded else 3 for cell in head]
        rule = ["-" * width if column in self.left else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
        return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *below))

    def latex(self) -> str:
        """A `tabular` for the package booktabs, without a line break at the end."""
        columns = "".join("l" if column in self.left else "r" for column in range(len(self.head)))
        rows = [
            " & ".join(self._latex(cell, place, column) for column, cell in enumerate(row))
            for place, row in enumerate(self.rows)
        ]
        head = " & ".join(map(_escape, self.head))
        lines = [f"\\begin{{tabular}}{{{columns}}}", "\\toprule", f"{head} \\\\", "\\midrule"]
        return "\n".join([*lines, *(f"{row} \\\\" for row in rows), "\\bottomrule", "\\end{tabular}"])

    def _latex(self, cell: str, row: int, column: int) -> str:
        if column in self.left:
            return _escape(cell)
        if cell in ("–", ""):
            return "--"
        number = "$" + cell.replace("±", "\\pm") + "$"
        return f"{{\\boldmath{number}}}" if (row, column) in self.bold else number


@dataclass(frozen=True)
class Mean:
    """A mean over repetitions, such as seeds, and how far these differ."""

    mean: float
    """Mean of the values."""

    deviation: float | None
    """Their sample standard deviation; None for a single value."""

    @classmethod
    def of(cls, values: Sequence[float]) -> "Mean":
        """The mean of one value or more."""
        return cls(fmean(values), stdev(values) if len(values) > 1 else None)

    @property
    def bar(self) -> float:
        """Length of an error bar: the deviation, or 0 for a single value."""
        return self.deviation or 0.0

    def words(self, digits: int, sign: str = "") -> str:
        """Text such as 12.30 ± 0.42; only the mean for a single value. With `sign` "+", a plus is written too."""
        mean = f"{round(self.mean, digits) + 0.0:{sign}.{digits}f}"  # + 0 takes the sign from −0.00
        return mean if self.deviation is None else f"{mean} ± {self.deviation:.{digits}f}"


def align(rows: Sequence[Row]) -> list[str]:
    """The lines of a table of plain values; none for no rows."""
    return Table.of(rows).lines() if rows else []


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Comma-separated values for other programs."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    return text.getvalue()


def csv_of(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows of plain values as CSV, with every column that any of them has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return csv_text(names, ([row.get(name) for name in names] for row in rows))


def _pad(rows: Sequence[Sequence[str]], left: Sequence[int], least: int = 0) -> list[list[str]]:
    widths = [max(least, *map(len, column)) for column in zip(*rows, strict=True)]
    return [
        [cell.ljust(width) if number in left else cell.rjust(width)
         for number, (cell, width) in enumerate(zip(row, widths, strict=True))]
        for row in rows
    ]  # fmt: skip


def _words(value: str | int | float | None) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else value


def _escape(words: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in words)
