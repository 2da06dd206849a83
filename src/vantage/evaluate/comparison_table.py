"""A comparison as text: Markdown and LaTeX for people, CSV for programs."""

import csv
import io

from vantage.evaluate.comparison import LEVEL, Cell, Column, Comparison, Row

__all__ = ["as_csv", "as_latex", "as_markdown", "notes"]


def as_markdown(table: Comparison) -> str:
    """A row for each group of runs, mean ± standard deviation over seeds; bold where a row is better than every other
    beyond the spread. What was tested stands below."""
    lines = [["", "seeds", *(_head(column) for column in table.columns)]]
    for row in table.rows:
        cells = [
            f"**{_words(cell)}**" if column.best == row.name else _words(cell)
            for column, cell in zip(table.columns, row.cells, strict=True)
        ]
        lines.append([row.name.replace("|", "\\|"), _seeds(row), *cells])
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    drawn = ["| " + " | ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)) + " |"
             for line in lines]  # fmt: skip
    drawn.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join([*drawn, "", *(f"- {note}" for note in notes(table)), ""])


def as_latex(table: Comparison) -> str:
    """A `tabular` for the package booktabs, with what was tested in comments below."""
    lines = ["\\begin{tabular}{ll" + "r" * len(table.columns) + "}", "\\toprule"]
    lines.append(" & ".join(["", "seeds", *(_escaped(_head(column)) for column in table.columns)]) + " \\\\")
    lines.append("\\midrule")
    for row in table.rows:
        cells = []
        for column, cell in zip(table.columns, row.cells, strict=True):
            number = "$" + _words(cell).replace("±", "\\pm") + "$"
            cells.append(f"\\boldmath{number}" if column.best == row.name else number)
        cells = [f"{{{cell}}}" if cell.startswith("\\boldmath") else cell for cell in cells]
        lines.append(" & ".join([_escaped(row.name), _seeds(row), *cells]) + " \\\\")
    lines += ["\\bottomrule", "\\end{tabular}", *(f"% {note}" for note in notes(table)), ""]
    return "\n".join(lines)


def as_csv(table: Comparison) -> str:
    """A line for each row and protocol, with its settings that are not the default: the numbers of all seeds, their
    mean and deviation, and whether the row is better than every other beyond the spread."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    heads = ["row", "trained", "protocol", "version", "settings", "measure", "seeds", "values", "mean", "sd", "n"]
    writer.writerow([*heads, "best"])
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            deviation = "" if cell.deviation is None else repr(cell.deviation)
            settings = ", ".join(map(str, column.changed))
            facts = [column.protocol, column.version, settings, column.measure, " ".join(map(str, row.seeds))]
            numbers = [" ".join(map(repr, cell.values)), repr(cell.mean), deviation, len(cell.values)]
            writer.writerow([row.name, int(row.trained), *facts, *numbers, int(column.best == row.name)])
    return text.getvalue()


def notes(table: Comparison) -> list[str]:
    """What the numbers are, and what was tested."""
    told = [f"Test images: {table.test}. Mean ± standard deviation over seeds; nothing is tested below three seeds."]
    for column in table.columns:
        if column.changed:
            told.append(f"{column.protocol}: {', '.join(each.sentence for each in column.changed)}.")
        for best, other, gap, p in column.differences:
            said = "beyond the spread" if p < LEVEL else "within the spread"
            count = f"n = {gap.n[0]}" if gap.n[0] == gap.n[1] else f"n = {gap.n[0]} and {gap.n[1]}"
            told.append(
                f"{column.name}: {best} less {other} is {gap.mean:+.2f}, {said}"
                f" ({gap.test}, {count}, p = {p:.3g} after Holm's correction)."
            )
    return told


def _head(column: Column) -> str:
    unit = "" if "(" in column.measure else " (%)"
    settings = "".join(f" {each}" for each in column.changed)
    return f"{column.protocol} v{column.version}{settings}, {column.measure}{unit}"


def _words(cell: Cell) -> str:
    return f"{cell.mean:.2f}" if cell.deviation is None else f"{cell.mean:.2f} ± {cell.deviation:.2f}"


def _seeds(row: Row) -> str:
    return ", ".join(map(str, row.seeds))


def _escaped(words: str) -> str:
    return "".join({"_": "\\_", "%": "\\%", "&": "\\&", "#": "\\#"}.get(letter, letter) for letter in words)
