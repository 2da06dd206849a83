"""Durations and times of day in words."""

import math
import time
from numbers import Real

from vantage.errors import UserError

__all__ = ["check_minutes", "clock", "duration", "in_minutes"]


def check_minutes(minutes: float, what: str) -> None:
    """Raises `UserError`, which begins with `what`, unless the number of minutes is finite and above 0."""
    if not (isinstance(minutes, Real) and 0 < minutes < math.inf):  # from Python, it may be anything
        raise UserError(f"{what}: give a finite number of minutes above 0")


def duration(seconds: float) -> str:
    """A duration in a suitable unit."""
    if seconds < 90:
        whole = max(1, round(seconds))
        return f"{whole} second{'s' * (whole > 1)}"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:,.1f} hours" if seconds < 48 * 3600 else f"{seconds / 86400:,.0f} days"


def in_minutes(minutes: float) -> str:
    """A number of minutes as the user gave it: 1 minute, 2.5 minutes."""
    return f"{minutes:g} minute{'s' * (minutes != 1)}"


def clock(seconds: float) -> str:
    """The time of day `seconds` from now; beyond a day, the date."""
    form = "%H:%M" if seconds < 86400 else "%d %B %Y"
    return time.strftime(form, time.localtime(time.time() + seconds))
