"""A comparison as text: Markdown and LaTeX for people, CSV for programs."""

from vantage.evaluate.compare.comparison import LEVEL, Column, Comparison, ComparisonCell, ComparisonRow
from vantage.storage.tables import Mean, Table, csv_text

__all__ = ["as_csv", "as_latex", "as_markdown", "notes"]

_IN_A_HEAD = 3
"""How many settings fit into the head of a column."""


def as_markdown(table: Comparison) -> str:
    """A row for each group of runs, with mean ± standard deviation over seeds. A number is bold if its row is better
    than every other beyond the spread. The tests follow below."""
    return "\n".join([_table(table).markdown(), "", *(f"- {note}" for note in notes(table)), ""])


def as_latex(table: Comparison) -> str:
    """A `tabular` for the package booktabs, with the tests in comments below."""
    return "\n".join([_table(table).latex(), *(f"% {note}" for note in notes(table)), ""])


def as_csv(table: Comparison) -> str:
    """A line for each row and column, with the protocol's settings that differ from the default: the numbers of all
    runs, their mean and deviation, whether the row is better than every other beyond the spread, what the deviation is
    over, and the numbers of all trials, with `;` between runs. If a protocol cannot evaluate a row, there are no
    numbers."""
    heads = ["row", "trained", "protocol", "version", "settings", "measure", "seeds", "values", "mean", "sd", "n"]
    lines: list[list[object]] = []
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            settings = ", ".join(map(str, column.changes))
            facts = [column.protocol, column.version, settings, column.measure, " ".join(map(str, row.seeds))]
            numbers, over = _numbers(cell)
            lines.append([row.name, int(row.trained), *facts, *numbers, int(column.best == row.name), *over])
    return csv_text([*heads, "best", "sd over", "trials"], lines)


def notes(table: Comparison) -> list[str]:
    """What the numbers mean, and which differences were tested."""
    lines = [f"Test images: {table.test}. Mean ± standard deviation over seeds; fewer than three seeds are not tested."]
    for number, column in enumerate(table.columns):
        if column.changes:
            lines.append(f"{column.protocol}: {', '.join(each.sentence for each in column.changes)}.")
        if column.pixels:
            lines.append(f"{column.protocol}: {column.pixels}, so that cell is empty.")
        if column.trials > 1:
            lines.append(_of_trials(table, number, column))
        for best, other, gap, p in column.differences:
            verdict = "beyond the spread" if p < LEVEL else "within the spread"
            count = f"n = {gap.n[0]}" if gap.n[0] == gap.n[1] else f"n = {gap.n[0]} and {gap.n[1]}"
            lines.append(
                f"{_name(table, column)}: {best} minus {other} is {gap.mean:+.2f}, {verdict}"
                f" ({gap.test}, {count}, p = {p:.3g} after Holm's correction)."
            )
    return list(dict.fromkeys(lines))


def _table(table: Comparison) -> Table:
    head = ("", "seeds", *(_head(table, column) for column in table.columns))
    rows = tuple((row.name, _seeds(row), *map(_words, row.cells)) for row in table.rows)
    best = {
        (line, number + 2)
        for line, row in enumerate(table.rows)
        for number, column in enumerate(table.columns)
        if column.best == row.name
    }
    return Table(head, rows, (0, 1), frozenset(best))


def _of_trials(table: Comparison, number: int, column: Column) -> str:
    """What the trials of a run are, and what ± means in a row of one run."""
    alone = any(cell is not None and cell.over == "trials" for cell in (row.cells[number] for row in table.rows))
    note = f"{column.protocol}: the mean of {column.trials} trials of each run, each with its own seed."
    return note + " For a single run, ± is over its trials and says nothing about other runs." * alone


def _head(table: Comparison, column: Column) -> str:
    unit = "" if "(" in column.measure else " (%)"
    return f"{column.protocol} v{column.version}{_settings(table, column)}, {column.measure}{unit}"


def _settings(table: Comparison, column: Column) -> str:
    """Settings that differ from the default; only their number, if there are many and they distinguish no columns."""
    distinct = {other.changes for other in table.columns if other.protocol == column.protocol}
    if len(column.changes) > _IN_A_HEAD and len(distinct) == 1:
        return f" ({len(column.changes)} settings below)"
    return "".join(f" {each}" for each in column.changes)


def _name(table: Comparison, column: Column) -> str:
    """The name of a column in a sentence."""
    several = sum((other.protocol, other.changes) == (column.protocol, column.changes) for other in table.columns) > 1
    return f"{column.protocol}{_settings(table, column)}{f', {column.measure}' * several}"


def _numbers(cell: ComparisonCell | None) -> tuple[list[object], list[str]]:
    """Values, mean, deviation and count; what the deviation is over, and the numbers of all trials."""
    if cell is None:
        return ["", "", "", 0], ["", ""]
    deviation = "" if cell.deviation is None else repr(cell.deviation)
    trials = "; ".join(" ".join(map(repr, run)) for run in cell.trials)
    return [" ".join(map(repr, cell.values)), repr(cell.mean), deviation, len(cell.values)], [cell.over, trials]


def _words(cell: ComparisonCell | None) -> str:
    return "–" if cell is None else Mean(cell.mean, cell.deviation).words(2)


def _seeds(row: ComparisonRow) -> str:
    return ", ".join(map(str, row.seeds))
