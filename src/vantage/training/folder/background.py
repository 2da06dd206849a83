"""Writing by the first process while all processes train on."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import torch

from vantage import processes
from vantage.errors import first_line
from vantage.processes.sharing import by_first

__all__ = ["BackgroundWriter", "trains_meanwhile"]


def trains_meanwhile(device: torch.device) -> bool:
    """Whether others have work while a thread of the first process writes: other processes, or a device. One process on
    a CPU would only need memory for a copy of what it writes."""
    return processes.count() > 1 or device.type != "cpu"


class BackgroundWriter:
    """Writes of the first process, at most one at a time. All processes call its methods, at the same points.

    It is a context: however it is left, the write in flight ends first. If the write fails then, its error is raised,
    or is noted on the error that ended the context.
    """

    def __init__(self, in_background: bool) -> None:
        """If not `in_background`, a write has ended when `begin` returns."""
        self.in_background = in_background
        self.seconds = 0.0
        """How long the last write took that has ended; 0 on other processes than the first, which alone writes."""
        self._executor = ThreadPoolExecutor(1)  # a thread that starts with the first write
        self._in_flight: Future[Any] | None = None

    def __enter__(self) -> "BackgroundWriter":
        return self

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        self._executor.shutdown()
        write, self._in_flight = self._in_flight, None
        problem = write.exception() if write else None
        if problem and error:
            error.add_note(f"what was being written in the background was lost too: {first_line(problem)}")
        elif problem:
            raise problem

    def begin(self, write: Callable[[], object]) -> None:
        """Begin a write; the one before must have been finished. What `write` uses must not change meanwhile."""
        assert self._in_flight is None
        if not self.in_background:
            by_first(partial(self._timed, write))
        elif processes.rank() == 0:
            self._in_flight = self._executor.submit(self._timed, write)

    def _timed(self, write: Callable[[], object]) -> None:
        start = time.monotonic()
        write()
        self.seconds = time.monotonic() - start

    def failed(self) -> bool:
        """Whether the write in flight has failed on this process. Does not wait, and may be called by one process."""
        write = self._in_flight
        return write is not None and write.done() and write.exception() is not None

    def finish(self) -> None:
        """Wait for the write in flight, if any. Raises its error on the first process, a `UserError` on the others."""
        write, self._in_flight = self._in_flight, None
        if self.in_background:
            by_first(lambda: write and write.result())
