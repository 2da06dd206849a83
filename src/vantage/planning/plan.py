"""Plan a run: try networks on this machine, and choose the run that fits the time."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from vantage.composition.field_types import expect
from vantage.data import Source
from vantage.durations import check_minutes, clock, duration, in_minutes
from vantage.encoders import Backbone, backbone_named
from vantage.errors import TimeTooShort
from vantage.machine.usual_torch import usual_torch
from vantage.planning.measured_rungs import (
    LONGER,
    MOST_EPOCHS,
    MeasuredRung,
    SpeedMeasure,
    best_rung,
    fill_time,
    measure_again,
    measure_rungs,
)
from vantage.planning.sizing import PlanOptions, default_recipe, fit_run, with_network
from vantage.planning.speed import Speed, measure_speed
from vantage.planning.words import choices, describe_networks, view_sides
from vantage.training.images import open_images
from vantage.training.run import Data, Run

__all__ = ["Plan", "make_plan", "plan", "rows"]

_LEAST_STEPS, _LEAST_SEEN = 30, 1_000  # a run with fewer steps or images learns nothing


@dataclass(frozen=True)
class Plan:
    """A run that fits the time, and its measured speed."""

    run: Run
    """The complete run."""

    images: int
    """Number of images that it trains on."""

    speed: Speed
    """Its speed on this machine."""

    minutes: float
    """The time that was asked for."""

    longer: Run
    """The run that would be planned for ten times as long."""

    @property
    def seconds(self) -> float:
        """Expected training time."""
        return self.speed.seconds(self.run, self.images)

    @property
    def images_per_second(self) -> float:
        """Images per second in training."""
        return self.speed.images_per_second(self.run)


@usual_torch()
def make_plan(
    source: Source,
    minutes: float,
    options: PlanOptions | None = None,
    *,
    measure: SpeedMeasure = measure_speed,
    start: float | None = None,
) -> Plan:
    """Make the plan behind `vantage.plan`, and return it with its measured speed.

    `measure` returns the speed of a run on some images. `start` is the value of `time.monotonic` when the minutes
    began; if omitted, they begin now.
    """
    options, start = options or PlanOptions(), time.monotonic() if start is None else start
    check_minutes(minutes, f"a plan for {minutes} minutes was asked for")

    def seconds_left() -> float:
        return 60 * minutes - (time.monotonic() - start)

    measured = measure_rungs(source, options, measure, seconds_left)
    chosen = best_rung(measured, seconds_left())
    best = measure_again(chosen, source, measure, seconds_left())
    measured = [best if one is chosen else one for one in measured]  # so the plan for ten times the minutes uses it
    changes = options.changes(best.recipe_run)
    if {"epochs", "data.max_images"} & set(changes):
        epochs = changes.get("epochs", math.floor(best.epochs(seconds_left())))
    else:
        best, epochs = fill_time(best, source, options, measure, seconds_left)
    seconds = seconds_left()
    short = epochs * best.steps < _LEAST_STEPS or epochs * best.images < _LEAST_SEEN
    if "epochs" not in changes and short and epochs < MOST_EPOCHS:
        raise _too_short(best, minutes, seconds)
    run = fit_run(options, best.recipe_run, best.images, epochs)
    run = _with_estimates(run, best, changes)
    return Plan(run, best.images, best.speed, minutes, _longer(measured, options, LONGER * 60 * minutes))


def _with_estimates(run: Run, rung: MeasuredRung, changes: Mapping[str, Any]) -> Run:
    """The run with what its progress report needs: the minutes that it should take, and the cost of
    views before they have grown."""
    if "monitoring.minutes" not in changes:
        minutes = math.ceil(rung.speed.seconds(run, rung.images)) / 60
        run = replace(run, monitoring=replace(run.monitoring, minutes=minutes))
    if rung.speed.fixed is not None and run.resizing is not None and "resizing" not in changes:
        run = replace(run, resizing=replace(run.resizing, fixed=round(rung.speed.fixed, 2)))
    return run


def _longer(measured: list[MeasuredRung], options: PlanOptions, seconds: float) -> Run:
    """The run that would be planned for this many seconds."""
    rung = best_rung(measured, seconds)
    return fit_run(options, rung.recipe_run, rung.images, max(1, math.floor(rung.epochs(seconds))))


def _too_short(rung: MeasuredRung, minutes: float, seconds: float) -> TimeTooShort:
    """The error for a time in which nothing can be learned, with what to do about it."""
    least_steps = max(_LEAST_STEPS, math.ceil(_LEAST_SEEN / rung.run.batch_size))
    enough = math.ceil((60 * minutes - seconds + rung.seconds_for(least_steps)) / 60) + 1
    message = (
        f"too little is learned in {in_minutes(minutes)}: {describe_networks(rung.run)} sees"
        f" {rung.images_per_second:,.1f} images/s here. Give {enough} minutes or more, a smaller network, or"
        " fewer pixels"
    )
    return TimeTooShort(message, enough)


def plan(
    source: Source | Path | str,
    minutes: float = 30.0,
    recipe: Callable[[int], Run] | None = None,
    *,
    size: int | None = None,
    backbone: Backbone | str | None = None,
    changes: Mapping[str, Any] | None = None,
    measure: SpeedMeasure = measure_speed,
) -> Run:
    """Return the run that makes the best use of some minutes on these images and this machine: an ordinary `Run`.

    `source` holds the images, or is their path. Networks and view sizes are tried for a few seconds each, by real
    training steps, and the plan takes the most expensive pair that still sees enough images in the time
    (`vantage.planning.ladder`): small networks on a CPU, ResNets on a GPU. The minutes cover everything: the trials,
    decoding, training, and the evaluation at the end, as in `vantage pretrain`. Images of several sizes are decoded
    once, and kept as squares, if there is time for it (`vantage.planning.squares`). Without a `recipe`, views are not
    mirrored if images and mirror images differ (`vantage.planning.mirror`). The speed determines the number of
    epochs (at most 1,000) and, if there is not enough time for the whole set, the number of images. These determine
    batch size, learning rate, warm-up, momentum, queue and clusters (`vantage.planning.sizing`). Without a `recipe`,
    the method is SimCLR up to 96 pixels and MoCo v2 above. If there are labels, a tenth of the images (at most about
    2,000) is held out to evaluate the result.

    `size`, `backbone` (may be a name) and `changes` (values by path, such as {"batch_size": 128, "data.hold_out": 0.0})
    override the plan. `measure` returns the speed of a run on some images, in place of timed steps.

    A plan depends on the speed at that moment, so two plans can differ. Train the run that was returned. Torch's
    default generator is unchanged. Raises `UserError` if minutes or images are too few, or an override does not fit.
    """
    overrides = dict(changes or {})
    if isinstance(source, Path | str):
        overrides["data.path"] = str(source)
        source, _ = open_images(Data(str(source)))
    method = recipe or default_recipe
    expect(method, Callable, "the recipe", "a function, such as vantage.moco_v2")
    if backbone is not None:
        method = partial(_on, method, backbone)
    kept = {"keep_network": backbone is not None, "keep_recipe": recipe is not None}
    options = PlanOptions(method, size, **kept, changes=lambda run: overrides)
    return make_plan(source, minutes, options, measure=measure).run


def _on(recipe: Callable[[int], Run], backbone: Backbone | str, size: int) -> Run:
    return with_network(recipe(size), backbone_named(backbone, size) if isinstance(backbone, str) else backbone)


def rows(plan: Plan, held_out_images: int = 0) -> list[tuple[str, str]]:
    """A plan in five lines, each with its heading."""
    run = plan.run
    now, later = (
        f"{describe_networks(one)}, views of {view_sides(one)} px, {one.epochs:,} epochs" for one in (run, plan.longer)
    )
    apart = f", {held_out_images:,} held out to judge by" if held_out_images else ""
    squares = f", kept as squares of {run.data.resident_side} px" if run.data.resident_side else ""
    return [
        *choices(run),
        ("epochs", f"{run.epochs:,} of {plan.images:,} images{apart}{squares}"),
        (
            "speed",
            f"{plan.images_per_second:,.0f} images/s here: {duration(plan.seconds)}, until {clock(plan.seconds)}",
        ),
        ("in ten times the time", later if later != now else "the same; only more images would use it"),
    ]
