"""A source that counts its reads."""

from tiny import images
from torch import Tensor

from vantage.errors import UnreadableImage

__all__ = ["Counting"]


class Counting:
    """Counts how often images are read; image `bad` cannot be read."""

    def __init__(self, bad: int | None = None) -> None:
        self.source, self.reads, self.bad = images(40, seed=1), 0, bad
        self.classes = self.source.classes

    def __len__(self) -> int:
        return len(self.source)

    def image(self, number: int) -> Tensor:
        self.reads += 1
        if number == self.bad:
            raise UnreadableImage(f"row {number}", "for a test")
        return self.source.image(number)

    def label(self, number: int) -> int | None:
        return self.source.label(number)

    def name(self, number: int) -> str:
        return self.source.name(number)

    def fingerprint(self) -> str:
        return self.source.fingerprint()
