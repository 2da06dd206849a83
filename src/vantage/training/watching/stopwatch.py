"""How long something has taken."""

import time

__all__ = ["Stopwatch"]


class Stopwatch:
    """Counts seconds from when it is made, or from `before` seconds earlier."""

    def __init__(self, before: float = 0.0) -> None:
        self._start = time.monotonic() - before

    @property
    def seconds(self) -> float:
        """Seconds since it began to count."""
        return time.monotonic() - self._start

    def restart(self) -> None:
        """Count from 0 again."""
        self._start = time.monotonic()
