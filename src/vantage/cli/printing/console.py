"""What the command line prints: tables in a terminal, plain lines elsewhere; only results and errors with --quiet."""

import inspect
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vantage.progress import Progress
    from vantage.training.run import Run

__all__ = ["INTERRUPTED", "WHY", "Console", "catalog", "columns", "first_sentence", "overview", "paragraphs"]

INTERRUPTED = 130
"""Exit status of work that a signal stopped."""

WHY = "why"
"""The name of a last column that gives reasons; outside a terminal they are put in parentheses."""


def columns() -> int:
    """Characters per line: the width of the terminal, at most 120."""
    return min(120, shutil.get_terminal_size().columns)


def paragraphs(text: str | None) -> str:
    """A docstring with its paragraphs wrapped to the width of the terminal."""
    each = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(textwrap.fill(" ".join(one.split()), columns(), break_on_hyphens=False) for one in each)


def overview(usage: str, about: str | None) -> str:
    """Help for a verb whose first word chooses what it does: how it is written, then its docstring."""
    return f"usage: vantage {usage}\n\n{paragraphs(about)}"


def first_sentence(text: str) -> str:
    """The first sentence of a text of one or more lines."""
    return re.split(r"(?<=[.]) (?=[A-Z0-9`])", " ".join(text.split()))[0]


def catalog(entries: Mapping[str, object]) -> str:
    """A line or two for each name: a text, or the first sentence of an object's docstring, without sources."""
    indent = max(map(len, entries), default=0) + 2
    rows = []
    for name, about in entries.items():
        text = about if isinstance(about, str) else inspect.getdoc(about) or ""
        words = re.sub(r" \([^()]*arXiv[^()]*\)", "", " ".join(text.partition("\n\n")[0].split())).replace("`", "")
        line = f"{name:<{indent}}{re.split(r'(?<=[.;]) ', words)[0].rstrip('.;')}."
        rows.append(textwrap.fill(line, columns(), subsequent_indent=" " * indent, break_on_hyphens=False))
    return "\n".join(rows)


@dataclass(frozen=True)
class Console:
    """Where a verb prints. Notes go to standard error, so that results on standard output can be piped."""

    quiet: bool = False
    """Whether to leave out notes; results and errors are always printed."""

    imports: tuple[str, ...] = ()
    """The user's modules, whose parts may be used."""

    @property
    def silent(self) -> bool:
        """Whether to leave out notes, because of `quiet` or because only the first of several processes prints them."""
        return self.quiet or not self.first

    @property
    def first(self) -> bool:
        """Whether this is the first of several processes, or the only one. That process prints the results."""
        return all(os.environ.get(name, "0") == "0" for name in ("RANK", "LOCAL_RANK"))

    def command(self, *words: object) -> str:
        """A command to copy, with the user's modules, without which it could not read their parts."""
        imports = (word for module in self.imports for word in ("--import", module))
        return " ".join(["vantage", *(shlex.quote(str(word)) for word in (*words, *imports))])

    def with_modules_of(self, run: "Run") -> "Console":
        """The same, whose commands also name the modules of the run's parts: a recipe may take parts from others."""
        from vantage.composition.fitting import parts_of

        known = ("vantage", *self.imports)
        modules = dict.fromkeys(type(part).__module__ for part in parts_of(run) if is_dataclass(part))
        others = [name for name in modules if not any(f"{name}.".startswith(f"{top}.") for top in known)]
        return replace(self, imports=(*self.imports, *others))

    def note(self, text: str) -> None:
        """Print a line that helps the user but is not a result."""
        if not self.silent:
            print(text, file=sys.stderr)

    def notes(self, title: str, rows: Sequence[Sequence[str]], columns: Sequence[str] = ()) -> None:
        """Print a table that helps the user but is not a result."""
        if not self.silent:
            _print(sys.stderr, title, rows, columns)

    def result(self, text: str) -> None:
        """Print a line of the result."""
        if self.first:
            print(text)

    def results(self, title: str, rows: Sequence[Sequence[str]], columns: Sequence[str] = ()) -> None:
        """Print a table of the result."""
        if self.first:
            _print(sys.stdout, title, rows, columns)

    def progress(self) -> "Progress":
        """The progress display; none if silent."""
        from vantage.progress import progress_for

        return progress_for(self.silent)


def _print(stream: Any, title: str, rows: Sequence[Sequence[str]], columns: Sequence[str]) -> None:
    if stream.isatty():
        _print_table(stream, title, rows, columns)
        return
    for line in (*([title] if title else []), *("  " * bool(title) + _line(row, columns) for row in rows)):
        print(line, file=stream)


def _print_table(stream: Any, title: str, rows: Sequence[Sequence[str]], columns: Sequence[str]) -> None:
    from rich.console import Console as Terminal
    from rich.table import Table
    from rich.text import Text

    console = Terminal(file=stream, highlight=False)
    heads = columns or [""] * len(rows[0])
    table = Table(*heads, show_header=bool(columns), box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.columns[0].style = "bold"
    table.columns[0].overflow = "fold"
    table.columns[0].no_wrap = columns[-1:] == (WHY,)  # paths, which people copy
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(Text(title, style="bold underline") if title else "")
    console.print(table)
    console.print()


def _line(row: Sequence[str], columns: Sequence[str]) -> str:
    if not columns:
        return f"{row[0]}: " + "; ".join(filter(None, row[1:]))
    if len(row) == 2:
        return f"{row[0]}: {row[1]}"
    words = [f"{name} {word}" for name, word in zip(columns[1:], row[1:], strict=True) if name != WHY]
    return f"{row[0]}: {', '.join(words)}" + (f" ({row[-1]})" if columns[-1] == WHY else "")
