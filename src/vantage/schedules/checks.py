"""What the schedules share: curves between two numbers, and checks that reject numbers that make no sense."""

import itertools
import math

from vantage.errors import UserError


def move_epoch(epoch: int, epochs: int, to: int) -> int:
    """The epoch of a run of `to` epochs that corresponds to `epoch` in a run of `epochs`."""
    return min(round(epoch * to / epochs), to - 1)


def between(start: float, end: float, part: float) -> float:
    """The point between two numbers: `part` 0 is `start`, 1 is `end`."""
    # Weighted by both ends, so that part 0 and part 1 give them exactly.
    return start * (1 - part) + end * part


def half_cosine(start: float, end: float, part: float) -> float:
    """From `start` to `end` along half a cosine."""
    return between(end, start, 0.5 * (1 + math.cos(math.pi * part)))


def warm_up(peak: float, step: int, steps: int) -> float:
    """Linear warm-up that ends at `peak` in its last step."""
    return peak * (step + 1) / steps


def check_length(part: object, step: int, steps_per_epoch: int, epochs: int, warmup_epochs: int) -> None:
    """Raises `UserError` for a run in which a learning rate makes no sense."""
    require(part, "step", step, step >= 0, "be 0 or more")
    require(
        part,
        "steps_per_epoch",
        steps_per_epoch,
        steps_per_epoch >= 1,
        "be 1 or more: is a batch larger than the set?",
    )
    require(part, "epochs", epochs, epochs >= 1, "be 1 or more")
    fits = warmup_epochs == 0 or warmup_epochs < epochs
    require(part, "warmup_epochs", warmup_epochs, fits, f"be less than the {epochs} epochs of the run")


def require(part: object, field: str, value: object, holds: bool, must: str) -> None:
    """Raises `UserError` unless the condition holds."""
    if not holds:
        raise UserError(f"{type(part).__name__}: {field} is {value}; it must {must}")


def finite(part: object, *fields: str) -> None:
    """Raises `UserError` for fields that are not finite."""
    for field in fields:
        value = getattr(part, field)
        require(part, field, value, math.isfinite(value), "be a finite number")


def at_least(part: object, least: int, *fields: str) -> None:
    """Raises `UserError` for fields below `least`."""
    for field in fields:
        value = getattr(part, field)
        require(part, field, value, math.isfinite(value) and value >= least, f"be {least} or more, and finite")


def growing(part: object, field: str) -> None:
    """Raises `UserError` unless a field's numbers increase, starting at 0 or later."""
    jumps = getattr(part, field)
    holds = all(jump >= 0 for jump in jumps) and all(a < b for a, b in itertools.pairwise(jumps))
    require(part, field, jumps, holds, "grow, and start at 0 or later")
