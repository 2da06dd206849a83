"""Ask the schedules of a run for their first and last number before its first step: a user's own may give anything."""

import math
from collections.abc import Callable
from typing import Any

from vantage.errors import UserError, naming
from vantage.schedules import Schedule
from vantage.training.run import Run

__all__ = ["try_schedules"]

_ROUNDING = 1e-6  # of a schedule that ends at 1


def try_schedules(run: Run, steps_per_epoch: int) -> None:
    """Raises `UserError` if the learning rate, the weight of a branch, or the momentum of an encoder cannot be computed
    at the first or the last step, or is no finite number: a checkpoint could not hold a tensor, for instance. So it
    does if the momentum leaves [0, 1]."""
    schedules: dict[str, Callable[[int], Any]] = {
        "learning_rate": lambda step: run.learning_rate(step, steps_per_epoch, run.epochs)
    }
    schedules |= {f"branches.{number}.weight": branch.weight for number, branch in enumerate(run.branches)}
    if isinstance(momentum := getattr(run.encoders, "momentum", None), Schedule):
        schedules["encoders.momentum"] = momentum
    for path, schedule in schedules.items():
        for step in (0, run.epochs * steps_per_epoch - 1):
            with naming(f"{path} cannot be computed at step {step}"):
                value = schedule(step)
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise UserError(f"{path} is {value!r} at step {step}: return a finite number, an int or a float")
            if path == "encoders.momentum" and not -_ROUNDING <= value <= 1 + _ROUNDING:
                raise UserError(
                    f"{path} is {value:g} at step {step}: it is the weight on the momentum encoder's own parameters,"
                    " give 0 to 1"
                )
