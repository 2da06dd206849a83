"""SIGINT and SIGTERM as a request that a loop can poll."""

import signal
from types import FrameType

import torch

from vantage import processes

__all__ = ["Signals", "anywhere"]


class Signals:
    """A first SIGINT or SIGTERM requests a clean end; a second one ends the process at once.

    A signal that is ignored stays ignored, such as Ctrl-C in the background job of a script, and one that code outside
    Python handles stays with it.
    """

    def __enter__(self) -> "Signals":
        self.requested, self.handlers = False, {}
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) in (signal.SIG_IGN, None):
                continue
            try:
                self.handlers[number] = signal.signal(number, self._request)
            except ValueError:  # not the main thread, which alone can handle signals
                break
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def _request(self, number: int, _: FrameType | None) -> None:
        self.requested = True
        signal.signal(number, self.handlers[number])

    def anywhere(self) -> bool:
        """Whether any process has been asked to end."""
        return anywhere(self.requested)


def anywhere(here: bool) -> bool:
    """Whether `here` is true on any process, so that all of them act in the same way."""
    return bool(processes.total(torch.tensor(float(here), device=processes.device())) > 0)
