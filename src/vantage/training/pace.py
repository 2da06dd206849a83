"""Whether a run keeps to the time that it was planned for."""

import time

__all__ = ["Pace"]

_AFTER, _TOLERANCE = 20.0, 1.1
"""Seconds before a speed is trusted, and how many times the planned time is still on time."""


class Pace:
    """Compares a run with its plan, and says so once where it falls behind.

    The run is not cut short: its learning rate would not have fallen yet, and a result that depended on the clock could
    not be reproduced.
    """

    def __init__(self, minutes: float, steps: int, step: int, seconds: float) -> None:
        """`minutes`: the plan, 0 for none; `steps` in all, of which `step` were taken before in `seconds`."""
        self.minutes, self.steps, self.first, self.seconds = minutes, steps, step, seconds
        self.start_time = time.monotonic()

    def late(self, step: int) -> str | None:
        """What to say once it is clear that the run will take a tenth longer than planned; nothing otherwise."""
        elapsed = time.monotonic() - self.start_time
        if not self.minutes or elapsed < _AFTER or step <= self.first:
            return None
        total_minutes = (self.seconds + elapsed + (self.steps - step) * elapsed / (step - self.first)) / 60
        if total_minutes <= _TOLERANCE * self.minutes:
            return None
        plan, self.minutes = self.minutes, 0.0
        return (
            f"training is slower than planned: it will take about {total_minutes:.1f} minutes instead of {plan:.1f}. Is"
            " another program using the processors? The run goes on to its end; Ctrl-C saves it, for vantage resume"
        )
