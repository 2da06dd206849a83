"""Describe a planned run in words."""

import time

from vantage.composition.fitting import parts_of
from vantage.composition.printing import in_a_line
from vantage.encoders import Encoder
from vantage.training.backbone import evaluation_view
from vantage.training.run import Run

__all__ = ["choices", "clock", "describe_networks", "duration", "in_minutes", "view_sides"]


def choices(run: Run) -> list[tuple[str, str]]:
    """Network and method of a planned run, each with its heading."""
    rate = getattr(run.learning_rate, "base", None)
    optimizer = f"{type(run.optimizer).__name__}{f' at {rate:.2g}' if rate else ''}"
    return [
        ("network", f"{describe_networks(run)}, views of {view_sides(run)} px"),
        ("method", f"{run.recipe}, batch {run.batch_size:,}, {optimizer}"),
    ]


def describe_networks(run: Run) -> str:
    """The backbones of a run, in words."""
    each = [in_a_line(part.backbone) for part in parts_of(run.encoders) if isinstance(part, Encoder)]
    return " and ".join(dict.fromkeys(each)) or in_a_line(run.encoders)


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


def view_sides(run: Run) -> str:
    """The sides of a run's views in pixels, from the first epoch to the last: 16 → 24 → 32."""
    sides = run.resizing.sides if run.resizing else ()
    return " → ".join(map(str, (*sides, _pixels(run))))


def _pixels(run: Run) -> int:
    return evaluation_view(run, 0).size
