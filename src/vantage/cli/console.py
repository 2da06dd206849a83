"""What the command line prints: tables in a terminal, plain lines elsewhere, nothing where quiet was asked for."""

import inspect
import os
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console as Terminal

__all__ = ["Console", "columns", "paragraphs"]


def columns() -> int:
    """Letters that text may be wide: the terminal's width, up to 120."""
    return min(120, shutil.get_terminal_size().columns)


def paragraphs(text: str | None) -> str:
    """A docstring, its paragraphs as wide as the terminal."""
    each = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(textwrap.fill(" ".join(one.split()), columns(), break_on_hyphens=False) for one in each)


@dataclass(frozen=True)
class Console:
    """How a verb speaks: notes to standard error, so that results on standard output may be piped."""

    quiet: bool = False
    """Whether notes are left out; results and mistakes are not."""

    imports: tuple[str, ...] = ()
    """Modules of the user's own whose parts may be used."""

    @property
    def silent(self) -> bool:
        """Whether notes are left out: because of `quiet`, or because the first of several processes tells them."""
        return self.quiet or any(os.environ.get(name, "0") != "0" for name in ("RANK", "LOCAL_RANK"))

    def note(self, text: str) -> None:
        """One line that helps but is no result."""
        if not self.silent:
            _terminal(True, plain=True).print(text)

    def notes(self, title: str, rows: Sequence[Sequence[str]], columns: Sequence[str] = ()) -> None:
        """Rows that help but are no result."""
        if not self.silent:
            _print(_terminal(True), title, rows, columns)

    def result(self, text: str) -> None:
        """One line that was asked for."""
        _terminal(False, plain=True).print(text)

    def results(self, title: str, rows: Sequence[Sequence[str]], columns: Sequence[str] = ()) -> None:
        """Rows that were asked for."""
        _print(_terminal(False), title, rows, columns)


def _terminal(stderr: bool, plain: bool = False) -> "Terminal":
    """Rich's own, which is imported when something is printed: help waits for nothing."""
    from rich.console import Console as Terminal

    return Terminal(stderr=stderr, highlight=False, markup=not plain, soft_wrap=plain)


def _print(console: "Terminal", title: str, rows: Sequence[Sequence[str]], columns: Sequence[str]) -> None:
    if console.is_terminal:
        from rich.table import Table
        from rich.text import Text

        heads = columns or [""] * len(rows[0])
        table = Table(*heads, show_header=bool(columns), box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.columns[0].style = "bold"
        table.columns[0].overflow = "fold"
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(Text(title, style="bold underline") if title else "")
        console.print(table)
        console.print()
        return
    for line in (*([title] if title else []), *("  " * bool(title) + _line(row, columns) for row in rows)):
        console.print(line, markup=False, soft_wrap=True)


def _line(row: Sequence[str], columns: Sequence[str]) -> str:
    if len(row) == 2:
        return f"{row[0]}: {row[1]}"
    return f"{row[0]}: " + ", ".join(f"{name} {word}" for name, word in zip(columns[1:], row[1:], strict=True))
