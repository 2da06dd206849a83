"""How long a run still takes, and whether it keeps to the time that it was planned for."""

import time
from collections.abc import Callable

__all__ = ["Pace"]

_AFTER, _TOLERANCE = 20.0, 1.1
"""Seconds before a speed is trusted, and how many times the planned time is still on time."""


class Pace:
    """Tells the time left, compares a run with its plan, and says so once where it falls behind.

    The run is not cut short: its learning rate would not have fallen yet, and a result that depended on the clock could
    not be reproduced.
    """

    def __init__(self, minutes: float, work: Callable[[int], float], step: int, seconds: float) -> None:
        """`minutes`: the plan, 0 for none; `work`: the share of all work that is done before a step; `step`: the first
        one of this process, before which the run took `seconds`."""
        self.minutes, self.work, self.first, self.seconds = minutes, work, step, seconds
        self.start_time = time.monotonic()

    def seconds_left(self, step: int) -> float | None:
        """Seconds of training that are left before a step; None before the first one is done."""
        before, done = self.work(self.first), self.work(step)
        return (1 - done) * (time.monotonic() - self.start_time) / (done - before) if done > before else None

    def late(self, step: int) -> str | None:
        """What to say once it is clear that the run will take a tenth longer than planned; nothing otherwise."""
        elapsed = time.monotonic() - self.start_time
        left = self.seconds_left(step)
        if not self.minutes or elapsed < _AFTER or left is None:
            return None
        total_minutes = (self.seconds + elapsed + left) / 60
        if total_minutes <= _TOLERANCE * self.minutes:
            return None
        plan, self.minutes = self.minutes, 0.0
        return (
            f"training is slower than planned: it will take about {total_minutes:.1f} minutes instead of {plan:.1f}. Is"
            " another program using the processors? The run goes on to its end; Ctrl-C saves it, for vantage resume"
        )
