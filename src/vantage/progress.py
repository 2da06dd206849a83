"""What a user sees while a run works: a bar in a terminal, plain lines elsewhere, nothing with --quiet."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from rich import progress as rich_progress
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

__all__ = ["BarProgress", "PlainProgress", "QuietProgress", "Progress", "counting", "ending", "progress_for", "task"]

_FIRST_LINE, _SECONDS_BETWEEN_LINES = 3.0, 30.0
"""Seconds before the first line, and the maximum between two lines; each wait is three times as long as the last."""


@runtime_checkable
class Progress(Protocol):
    """Reports the progress of a long task."""

    def start(self, name: str, total: int, completed: int = 0) -> None:
        """Begin a task of `total` parts; `completed` of them are already done."""
        ...

    def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
        """Report that `completed` parts are done now; `note` adds the current state, such as the loss. If omitted,
        `seconds_left` follows from the parts done so far."""
        ...

    def line(self, text: str) -> None:
        """Print a line that stays."""
        ...

    def warn(self, text: str) -> None:
        """Print a warning, even when quiet."""
        ...

    def stop(self) -> None:
        """End the task."""
        ...


def progress_for(quiet: bool = False) -> Progress:
    """A bar in a terminal, plain lines when output goes elsewhere, only warnings when quiet."""
    if quiet:
        return QuietProgress()
    return BarProgress() if sys.stderr.isatty() else PlainProgress()


@contextmanager
def task(progress: Progress, name: str, total: int, completed: int = 0) -> Iterator[None]:
    """A task that ends with the block, whatever ends that."""
    progress.start(name, total, completed)
    with ending(progress):
        yield


@contextmanager
def ending(progress: Progress) -> Iterator[None]:
    """The task that begins within the block ends with it, whatever ends that."""
    try:
        yield
    finally:
        progress.stop()


@contextmanager
def counting(progress: Progress, name: str) -> Iterator[Callable[[int, int], None]]:
    """A callback (parts done, total parts) for work that may turn out to be empty: its first call starts the progress,
    and so does one with fewer parts than before or with another total, which belongs to other work of that name. The
    end of the block stops it."""
    last: tuple[int, int] | None = None

    def advance(completed: int, total: int) -> None:
        nonlocal last
        if last is None or completed < last[0] or total != last[1]:
            progress.start(name, total)
        last = completed, total
        progress.advance(completed)

    try:
        yield advance
    finally:
        if last is not None:
            progress.stop()


class QuietProgress:
    """Prints only warnings."""

    def start(self, name: str, total: int, completed: int = 0) -> None:
        """Do nothing."""

    def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
        """Do nothing."""

    def line(self, text: str) -> None:
        """Do nothing."""

    def warn(self, text: str) -> None:
        """Print to standard error."""
        print(f"warning: {text}", file=sys.stderr, flush=True)

    def stop(self) -> None:
        """Do nothing."""


class PlainProgress:
    """Prints a line from time to time, for logs: parts done, time left, and the note."""

    def __init__(self) -> None:
        self.name, self.total, self.initial = "", 0, 0
        self.start_time = self.last_line = time.monotonic()
        self.wait, self.is_first = _FIRST_LINE, True

    def start(self, name: str, total: int, completed: int = 0) -> None:
        """Begin a task."""
        self.name, self.total, self.initial = name, total, completed
        self.start_time = self.last_line = time.monotonic()
        self.wait, self.is_first = _FIRST_LINE, True

    def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
        """Print a line after 3 seconds, to show the time left early, and then ever less often, up to 30 seconds
        apart."""
        now = time.monotonic()
        if completed <= self.initial:
            return
        first, self.is_first = self.is_first, False
        if first and seconds_left is None and now - self.start_time < _SECONDS_BETWEEN_LINES:
            self.initial, self.start_time = completed, now  # it took as long as processes take to start, say
            return
        if now - self.last_line < self.wait:
            return
        self.last_line, self.wait = now, min(3 * self.wait, _SECONDS_BETWEEN_LINES)
        if seconds_left is None:
            seconds_left = (self.total - completed) * (now - self.start_time) / (completed - self.initial)
        self.line(
            f"{self.name}: {completed:,} of {self.total:,}, {_duration(seconds_left)} left{', ' if note else ''}{note}"
        )

    def line(self, text: str) -> None:
        """Print to standard error, so that results can be piped."""
        print(text, file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        """Print like any other line."""
        self.line(f"warning: {text}")

    def stop(self) -> None:
        """Do nothing; there is nothing to clear."""


class _TimeLeft(TimeRemainingColumn):
    """The time left as the task reports it, or estimated from the parts done so far."""

    def render(self, task: rich_progress.Task) -> Text:
        """The time left of a task."""
        seconds = task.fields["seconds_left"]
        return super().render(task) if seconds is None else Text(_duration(seconds), style="progress.remaining")


class BarProgress:
    """Shows a bar with the time left."""

    def __init__(self) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            _TimeLeft(),
            TextColumn("left"),
            TextColumn("[dim]{task.fields[note]}"),
        )
        self.console = Console(stderr=True)
        self.bar = rich_progress.Progress(*columns, console=self.console, transient=True)
        self.task = None

    def start(self, name: str, total: int, completed: int = 0) -> None:
        """Begin a task and remove the previous task's bar."""
        if self.task is not None:
            self.bar.remove_task(self.task)
        self.task = self.bar.add_task(name, total=total, completed=completed, note="", seconds_left=None)
        self.bar.start()

    def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
        """Advance the bar."""
        if self.task is not None:
            self.bar.update(self.task, completed=completed, note=note, seconds_left=seconds_left)

    def line(self, text: str) -> None:
        """Print above the bar."""
        self.console.print(text, highlight=False, markup=False)

    def warn(self, text: str) -> None:
        """Print above the bar, in yellow."""
        self.console.print(f"warning: {text}", style="yellow", highlight=False, markup=False)

    def stop(self) -> None:
        """Remove the bar."""
        self.bar.stop()


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
