"""Rows of plain values as lines for people."""

from collections.abc import Mapping, Sequence

__all__ = ["Row", "aligned"]

Row = Mapping[str, str | int | float | None]
"""A row of a table: value by column; `None` where there is none."""


def aligned(rows: Sequence[Row]) -> list[str]:
    """A line of column names and a line for each row, in columns; numbers to the right."""
    if not rows:
        return []
    heads = list(rows[0])
    cells = [[_told(row[head]) for head in heads] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    left = [all(isinstance(row[head], str) for row in rows) for head in heads]
    lines = []
    for line in ([head.replace("_", " ") for head in heads], *cells):
        padded = [c.ljust(w) if to_left else c.rjust(w) for c, w, to_left in zip(line, widths, left, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return lines


def _told(value: str | int | float | None) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else value
