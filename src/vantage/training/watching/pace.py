"""How much longer a run will take, and whether it keeps to its planned time."""

from collections.abc import Callable

from vantage.training.watching.stopwatch import Stopwatch

__all__ = ["Pace"]

_AFTER, _TOLERANCE = 20.0, 1.1
"""Seconds before a measured speed is trusted, and how many times the planned time still counts as on time."""


class Pace:
    """Estimates the time left, compares a run with its plan, and warns once if it falls behind.

    A late run is not cut short: its learning rate would not have fallen to its end, and a result that depends on the
    clock cannot be reproduced.
    """

    def __init__(self, minutes: float, work: Callable[[int], float], step: int, seconds: float) -> None:
        """`minutes` is the plan, 0 for none; `work` gives the share of all work that is done before a step; `step` is
        the first one of this process, and `seconds` the time that the run took before it."""
        self.minutes, self.work, self.first, self.seconds = minutes, work, step, seconds
        self.stopwatch = Stopwatch()

    def seconds_left(self, step: int) -> float | None:
        """Seconds of training left before a step; None until this process has finished its first step."""
        before, done = self.work(self.first), self.work(step)
        return (1 - done) * self.stopwatch.seconds / (done - before) if done > before else None

    def late(self, step: int) -> str | None:
        """A warning, once, when it becomes clear that the run will take over a tenth longer than planned; else None."""
        elapsed, left = self.stopwatch.seconds, self.seconds_left(step)
        if not self.minutes or elapsed < _AFTER or left is None:
            return None
        total_minutes = (self.seconds + elapsed + left) / 60
        if total_minutes <= _TOLERANCE * self.minutes:
            return None
        plan, self.minutes = self.minutes, 0.0
        minutes = f"{total_minutes:.1f} minutes instead of {plan:.1f}"
        seconds = f"{60 * total_minutes:.0f} seconds instead of {60 * plan:.0f}"
        return (
            f"training is slower than planned: it will take about {minutes if plan >= 2 else seconds}. Is another"
            " program using the processors? The run goes on to its end; Ctrl-C saves it, for vantage resume"
        )
