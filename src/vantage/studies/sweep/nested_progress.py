"""The progress of one run, and of its evaluation, shown as part of a longer task."""

from vantage.progress import Progress, QuietProgress

__all__ = ["NestedProgress", "WarnsOnce"]


class NestedProgress:
    """Moves the bar of the whole task, so that it shows the time left for the whole task; only warnings are printed."""

    def __init__(self, whole: Progress, before: int, name: str, task: str) -> None:
        """`before` is how much of the whole task is done when this part starts. Of this part, only what is done of
        `task` counts; other work, such as decoding images, moves no bar."""
        self.whole, self.before, self.name, self.task = whole, before, name, task
        self.current, self.total = "", 0

    def start(self, name: str, total: int, completed: int = 0) -> None:
        """Start the task of this part, or continue it where it stopped; or start other work."""
        self.current, self.total = name, total
        if name == self.task:
            self.whole.advance(self.before + completed, self.name)

    def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
        """Report how much of this part is done."""
        if self.current == self.task:
            self.whole.advance(self.before + completed, f"{self.name}  {note}")
        else:
            self.whole.advance(self.before, f"{self.name}  {self.current}: {completed:,} of {self.total:,}")

    def line(self, text: str) -> None:
        """Do nothing: lines would interrupt the bar of the whole task."""

    def warn(self, text: str) -> None:
        """Show a warning with the name of this part."""
        self.whole.warn(f"{self.name}: {text}")

    def stop(self) -> None:
        """Do nothing, since the whole task goes on."""


class WarnsOnce(QuietProgress):
    """Shows each warning of many evaluations once, as one of the whole task: what all of them share, such as a class
    that is absent, is otherwise repeated by each."""

    def __init__(self, whole: Progress) -> None:
        self.whole = whole
        self.seen = set[str]()

    def warn(self, text: str) -> None:
        """Show a warning that is new."""
        if text not in self.seen:
            self.seen.add(text)
            self.whole.warn(text)
