"""The progress of one run, shown as part of longer work."""

from vantage.progress import Progress

__all__ = ["Within"]


class Within:
    """Moves the bar of the whole work, so that the time left is that of the whole; only warnings get lines."""

    def __init__(self, whole: Progress, before: int, name: str) -> None:
        """`before` parts of the whole are done when this one begins."""
        self.whole, self.before, self.name = whole, before, name

    def start(self, what: str, total: int, done: int = 0) -> None:
        """This part begins, perhaps where it stopped before."""
        self.whole.advance(self.before + done, self.name)

    def advance(self, done: int, note: str = "") -> None:
        """`done` of its parts are done."""
        self.whole.advance(self.before + done, f"{self.name}  {note}")

    def line(self, text: str) -> None:
        """Nothing."""

    def warn(self, text: str) -> None:
        """With the part's name."""
        self.whole.warn(f"{self.name}: {text}")

    def stop(self) -> None:
        """Nothing: the whole goes on."""
