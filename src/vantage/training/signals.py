"""SIGINT and SIGTERM as a wish that a loop looks at."""

import signal
from types import FrameType

import torch

from vantage import processes

__all__ = ["Signals", "anywhere"]


class Signals:
    """SIGINT and SIGTERM ask for a clean end; a second one ends at once."""

    def __enter__(self) -> "Signals":
        self.asked, self.before = False, {}
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self.before[number] = signal.signal(number, self._ask)
            except ValueError:  # not the main thread: whoever owns it handles signals
                break
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, _: FrameType | None) -> None:
        self.asked = True
        signal.signal(number, self.before[number])

    def anywhere(self) -> bool:
        """Whether any process was asked to end."""
        return anywhere(self.asked)


def anywhere(here: bool) -> bool:
    """Whether it holds on any process, so that all do the same."""
    return bool(processes.total(torch.tensor(float(here), device=processes.device())) > 0)
