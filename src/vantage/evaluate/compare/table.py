"""A comparison as text: Markdown and LaTeX for people, CSV for programs."""

import csv
import io

from vantage.evaluate.compare.comparison import LEVEL, Cell, Column, Comparison, Row

__all__ = ["as_csv", "as_latex", "as_markdown", "notes"]

_IN_A_HEAD = 3
"""Settings that a column's head has room for."""


def as_markdown(table: Comparison) -> str:
    """A row for each group of runs, mean ± standard deviation over seeds; bold where a row is better than every other
    beyond the spread. What was tested stands below."""
    lines = [["", "seeds", *(_head(table, column) for column in table.columns)]]
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
    lines.append(" & ".join(["", "seeds", *(_escaped(_head(table, column)) for column in table.columns)]) + " \\\\")
    lines.append("\\midrule")
    for row in table.rows:
        cells = []
        for column, cell in zip(table.columns, row.cells, strict=True):
            number = "--" if cell is None else "$" + _words(cell).replace("±", "\\pm") + "$"
            cells.append(f"{{\\boldmath{number}}}" if column.best == row.name else number)
        lines.append(" & ".join([_escaped(row.name), _seeds(row), *cells]) + " \\\\")
    lines += ["\\bottomrule", "\\end{tabular}", *(f"% {note}" for note in notes(table)), ""]
    return "\n".join(lines)


def as_csv(table: Comparison) -> str:
    """A line for each row and column, with the protocol's settings that are not the default: the numbers of all runs,
    their mean and deviation, and whether the row is better than every other beyond the spread; of several trials all
    numbers, `;` between the runs, and what the deviation is over. A protocol that cannot judge a row has no numbers."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    heads = ["row", "trained", "protocol", "version", "settings", "measure", "seeds", "values", "mean", "sd", "n"]
    writer.writerow([*heads, "best", "sd over", "trials"])
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            settings = ", ".join(map(str, column.changed))
            facts = [column.protocol, column.version, settings, column.measure, " ".join(map(str, row.seeds))]
            numbers, over = _numbers(cell)
            writer.writerow([row.name, int(row.trained), *facts, *numbers, int(column.best == row.name), *over])
    return text.getvalue()


def notes(table: Comparison) -> list[str]:
    """What the numbers are, and what was tested."""
    told = [f"Test images: {table.test}. Mean ± standard deviation over seeds; nothing is tested below three seeds."]
    for number, column in enumerate(table.columns):
        if column.changed:
            told.append(f"{column.protocol}: {', '.join(each.sentence for each in column.changed)}.")
        if column.pixels:
            told.append(f"{column.protocol}: {column.pixels}, so that cell is empty.")
        if column.trials > 1:
            told.append(_of_trials(table, number, column))
        for best, other, gap, p in column.differences:
            said = "beyond the spread" if p < LEVEL else "within the spread"
            count = f"n = {gap.n[0]}" if gap.n[0] == gap.n[1] else f"n = {gap.n[0]} and {gap.n[1]}"
            told.append(
                f"{_name(table, column)}: {best} less {other} is {gap.mean:+.2f}, {said}"
                f" ({gap.test}, {count}, p = {p:.3g} after Holm's correction)."
            )
    return list(dict.fromkeys(told))


def _of_trials(table: Comparison, number: int, column: Column) -> str:
    """What several trials of each run are, and what ± is of a row that has one run."""
    alone = any(cell is not None and cell.over == "trials" for cell in (row.cells[number] for row in table.rows))
    told = f"{column.protocol}: the mean of {column.trials} trials of each run, each with a seed of its own."
    return told + " Of one run, ± is over its trials: it tells nothing of other runs." * alone


def _head(table: Comparison, column: Column) -> str:
    unit = "" if "(" in column.measure else " (%)"
    return f"{column.protocol} v{column.version}{_settings(table, column)}, {column.measure}{unit}"


def _settings(table: Comparison, column: Column) -> str:
    """What is not the default: its number, where it is much and nothing else tells by it."""
    alike = {other.changed for other in table.columns if other.protocol == column.protocol}
    if len(column.changed) > _IN_A_HEAD and len(alike) == 1:
        return f" ({len(column.changed)} settings below)"
    return "".join(f" {each}" for each in column.changed)


def _name(table: Comparison, column: Column) -> str:
    """A column in a sentence."""
    several = sum((other.protocol, other.changed) == (column.protocol, column.changed) for other in table.columns) > 1
    return f"{column.protocol}{_settings(table, column)}{f', {column.measure}' * several}"


def _numbers(cell: Cell | None) -> tuple[list[object], list[str]]:
    """Values, mean, deviation and how many; what the deviation is over, and the numbers of all trials."""
    if cell is None:
        return ["", "", "", 0], ["", ""]
    deviation = "" if cell.deviation is None else repr(cell.deviation)
    trials = "; ".join(" ".join(map(repr, run)) for run in cell.trials)
    return [" ".join(map(repr, cell.values)), repr(cell.mean), deviation, len(cell.values)], [cell.over, trials]


def _words(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    return f"{cell.mean:.2f}" if cell.deviation is None else f"{cell.mean:.2f} ± {cell.deviation:.2f}"


def _seeds(row: Row) -> str:
    return ", ".join(map(str, row.seeds))


def _escaped(words: str) -> str:
    return "".join({"_": "\\_", "%": "\\%", "&": "\\&", "#": "\\#"}.get(letter, letter) for letter in words)
