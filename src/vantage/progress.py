"""What a person sees while a run works: a bar in a terminal, plain lines elsewhere, nothing when quiet."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from rich import progress as rich_progress
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

__all__ = ["BarProgress", "PlainProgress", "QuietProgress", "Progress", "counting", "progress_for"]

_FIRST_LINE, _SECONDS_BETWEEN_LINES = 3.0, 30.0
"""Seconds to the first line; each is three times as far from the next, up to the second number."""


@runtime_checkable
class Progress(Protocol):
    """Reports how far a long task is."""

    def start(self, name: str, total: int, completed: int = 0) -> None:
        """Work of `total` parts begins, of which `done` are finished already."""
        ...

    def advance(self, completed: int, note: str = "") -> None:
        """`done` parts are finished now; `note` says how it is going."""
        ...

    def line(self, text: str) -> None:
        """One line that stays."""
        ...

    def warn(self, text: str) -> None:
        """One line that is shown even when quiet."""
        ...

    def stop(self) -> None:
        """The work is over."""
        ...


def progress_for(quiet: bool = False) -> Progress:
    """A bar in a terminal, plain lines when the output goes elsewhere, warnings only when quiet."""
    if quiet:
        return QuietProgress()
    return BarProgress() if sys.stderr.isatty() else PlainProgress()


@contextmanager
def counting(progress: Progress, name: str) -> Iterator[Callable[[int, int], None]]:
    """A callback (parts done, parts in all) for work that may turn out to be none: its first call starts the progress,
    the end of the block stops it."""
    is_running = False

    def advance(completed: int, total: int) -> None:
        nonlocal is_running
        if not is_running:
            progress.start(name, total)
            is_running = True
        progress.advance(completed)

    try:
        yield advance
    finally:
        if is_running:
            progress.stop()


class QuietProgress:
    """Says nothing but warnings."""

    def start(self, name: str, total: int, completed: int = 0) -> None:
        """Nothing."""

    def advance(self, completed: int, note: str = "") -> None:
        """Nothing."""

    def line(self, text: str) -> None:
        """Nothing."""

    def warn(self, text: str) -> None:
        """To standard error."""
        print(f"warning: {text}", file=sys.stderr, flush=True)

    def stop(self) -> None:
        """Nothing."""


class PlainProgress:
    """A line from time to time, for logs: parts done, time left, how it is going."""

    def __init__(self) -> None:
        self.name, self.total, self.initial = "", 0, 0
        self.start_time = self.last_line = time.monotonic()
        self.wait = _FIRST_LINE

    def start(self, name: str, total: int, completed: int = 0) -> None:
        """Work begins."""
        self.name, self.total, self.initial = name, total, completed
        self.start_time = self.last_line = time.monotonic()
        self.wait = _FIRST_LINE

    def advance(self, completed: int, note: str = "") -> None:
        """A line after 3 seconds, so that the time left is known soon; then fewer, to one every 30 seconds."""
        now = time.monotonic()
        if now - self.last_line < self.wait or completed <= self.initial:
            return
        self.last_line, self.wait = now, min(3 * self.wait, _SECONDS_BETWEEN_LINES)
        remaining = (self.total - completed) * (now - self.start_time) / (completed - self.initial)
        self.line(
            f"{self.name}: {completed:,} of {self.total:,}, {_duration(remaining)} left{', ' if note else ''}{note}"
        )

    def line(self, text: str) -> None:
        """To standard error, so that results may be piped."""
        print(text, file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        """As any line."""
        self.line(f"warning: {text}")

    def stop(self) -> None:
        """Nothing to clear away."""


class BarProgress:
    """A bar with the time left."""

    def __init__(self) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
            TextColumn("[dim]{task.fields[note]}"),
        )
        self.console = Console(stderr=True)
        self.bar = rich_progress.Progress(*columns, console=self.console, transient=True)
        self.task = None

    def start(self, name: str, total: int, completed: int = 0) -> None:
        """Work begins; a bar before it is taken away."""
        if self.task is not None:
            self.bar.remove_task(self.task)
        self.task = self.bar.add_task(name, total=total, completed=completed, note="")
        self.bar.start()

    def advance(self, completed: int, note: str = "") -> None:
        """Move the bar."""
        if self.task is not None:
            self.bar.update(self.task, completed=completed, note=note)

    def line(self, text: str) -> None:
        """Above the bar."""
        self.console.print(text, highlight=False, markup=False)

    def warn(self, text: str) -> None:
        """Above the bar, in a color."""
        self.console.print(f"warning: {text}", style="yellow", highlight=False, markup=False)

    def stop(self) -> None:
        """Take the bar away."""
        self.bar.stop()


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
