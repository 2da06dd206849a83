"""Plans: every recipe can be sized, the time is kept, more of it is never worse, and mistakes are reported."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from known_pace import LARGE, SMALL, Pace, noise

from vantage.composition.fitting import parts_of
from vantage.data import Arrays, Source
from vantage.data.order import steps_in
from vantage.durations import clock, duration
from vantage.encoders import BatchNorm, Convolutions, Encoder, Normalization, ResNet9, Shared, SplitBatchNorm
from vantage.errors import UserError
from vantage.memory import Queue
from vantage.planning import plan
from vantage.planning.ladder import rungs
from vantage.planning.plan import make_plan, rows
from vantage.planning.sizing import PlanOptions, default_recipe, with_network
from vantage.planning.speed import Speed
from vantage.planning.suitable_rungs import check_rungs
from vantage.planning.words import describe_networks
from vantage.recipes import RECIPES, interclr, simclr
from vantage.training.run import Run
from vantage.training.start.try_parts import try_branches


def views_shown(run: Run, images: int) -> int:
    count = min(images, run.data.max_images or images)
    return run.epochs * steps_in(count, run.batch_size) * run.batch_size


@pytest.mark.parametrize("recipe", [*RECIPES, default_recipe], ids=lambda recipe: recipe.__name__)
@pytest.mark.parametrize("images", [pytest.param(40, marks=pytest.mark.slow), 600])
def test_every_recipe_is_sized_to_the_time(recipe: Callable[[int], Run], images: int) -> None:
    source = noise(images)
    result = make_plan(source, 5.0, PlanOptions(recipe), measure=Pace())
    run = result.run
    assert run.recipe == recipe(32).recipe and run.data.max_images == 0
    assert result.seconds <= 300 and (result.seconds >= 270 or run.epochs == 1_000)
    small = (Convolutions, ResNet9)
    assert all(isinstance(part.backbone, small) for part in parts_of(run.encoders) if isinstance(part, Encoder))
    before = [part.backbone.in_channels for part in parts_of(recipe(32).encoders) if isinstance(part, Encoder)]
    assert before == [part.backbone.in_channels for part in parts_of(run.encoders) if isinstance(part, Encoder)]
    for part in parts_of(run.branches):
        assert not isinstance(part, Queue) or part.length <= images // 2 or images < 100
    steps = steps_in(images, run.batch_size)
    rates = [run.learning_rate(step, steps, run.epochs) for step in range(0, run.epochs * steps, 37)]
    assert all(np.isfinite(rates)) and max(rates) > 0
    try_branches(run, steps=run.epochs * steps)


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "source"), [(None, SMALL), (interclr, LARGE)], ids=["quick", "interclr"])
def test_more_minutes_never_mean_fewer_views_or_a_smaller_network(recipe: Any, source: Arrays) -> None:
    runs = [
        plan(source, minutes, recipe, measure=Pace(300.0)) for minutes in (0.5, 1.0, 3.0, 5.0, 15.0, 240.0, 2_000.0)
    ]
    heights = [_height(run) for run in runs]
    assert heights == sorted(heights) and heights[0] < heights[-1]
    for before, after in zip(runs, runs[1:], strict=False):
        assert _height(before) < _height(after) or views_shown(before, len(source)) <= views_shown(after, len(source))


def _height(run: Run) -> int:
    ladder = [(rung.backbone, rung.size) for rung in rungs(32, on_gpu=False)]
    backbones = [part.backbone for part in parts_of(run.encoders) if isinstance(part, Encoder)]
    return ladder.index((backbones[0], run.views.evaluation(0).size))


@pytest.mark.parametrize("minutes", [1.0, 5.0, 30.0])
@pytest.mark.parametrize("speed", [30.0, 3_000.0])
def test_the_time_is_kept_with_room_to_judge(minutes: float, speed: float) -> None:
    result = make_plan(LARGE, minutes, measure=Pace(speed))
    evaluation_seconds = 4 + min(7_000, result.images) / 3 / result.images_per_second
    assert result.seconds + evaluation_seconds <= 60 * minutes
    assert result.seconds + evaluation_seconds >= 0.8 * 60 * minutes or result.run.epochs == 1_000
    assert result.seconds <= 60 * result.run.monitoring.minutes <= result.seconds + 1


def test_time_that_is_gone_is_not_planned_again() -> None:
    import time

    fresh = make_plan(LARGE, 5.0, measure=Pace())
    late = make_plan(LARGE, 5.0, measure=Pace(), start=time.monotonic() - 150)
    assert 120 < late.seconds < 0.6 * fresh.seconds


def test_a_set_that_is_too_large_for_the_time_is_made_smaller() -> None:
    run = plan(LARGE, 1.0, measure=Pace(200.0))
    assert 256 < run.data.max_images < 5_000 and run.epochs >= 5
    bank = plan(LARGE, 1.0, interclr, measure=Pace(200.0))
    assert bank.epochs >= 10 and 0 < bank.data.max_images < 5_000
    assert plan(LARGE, 60.0, measure=Pace(200.0)).data.max_images == 0


@pytest.mark.parametrize("speed", [70.0, 130.0, 330.0, 520.0])
def test_whole_epochs_leave_little_of_the_time(speed: float) -> None:
    result = make_plan(LARGE, 5.0, measure=Pace(speed))
    evaluation_seconds = 4 + min(7_000, result.images) / 3 / result.images_per_second
    assert 0.8 * 300 <= result.seconds + evaluation_seconds <= 300 and result.run.epochs >= 5


def test_shares_that_no_rung_allows_are_refused_before_anything_is_measured() -> None:
    """Also a share of several processes, which a measurement on one of them would allow."""

    def pace(run: Run, source: Source, seconds: float = 2.0) -> Speed:
        pytest.fail("measured")

    three = {"hardware.devices": 3, "batch_size": 240}
    for name, changes in (("2 accumulated parts", {"accumulate": 2}), ("3 processes", three)):
        normalization = SplitBatchNorm(8) if "processes" in name else BatchNorm()
        recipe = partial(_normalized, normalization)
        options = PlanOptions(recipe, keep_recipe=True, changes=lambda run, changes=changes: changes)
        for refused in (partial(check_rungs, LARGE, options), partial(make_plan, LARGE, 5.0, options, measure=pace)):
            with pytest.raises(UserError, match=name):
                refused()
    check_rungs(LARGE, PlanOptions(changes=lambda run: three))


@pytest.mark.parametrize("accumulate", [1, 2, 3])
def test_a_plan_gives_each_accumulated_part_a_group(accumulate: int) -> None:
    """So that parts change nothing else in the plan."""
    options = PlanOptions(changes=lambda run: {"accumulate": accumulate})
    check_rungs(LARGE, options)
    run, whole = (make_plan(LARGE, 5.0, some, measure=Pace(300.0)).run for some in (options, PlanOptions()))
    assert isinstance(run.encoders, Shared) and isinstance(whole.encoders, Shared)
    assert run.encoders.encoder.normalization == (BatchNorm() if accumulate == 1 else SplitBatchNorm(accumulate))
    assert run.encoders.encoder.backbone == whole.encoders.encoder.backbone
    assert (run.recipe, run.views) == (whole.recipe, whole.views)


def _normalized(normalization: Normalization, size: int) -> Run:
    run = simclr(size)
    assert isinstance(run.encoders, Shared)
    return replace(run, encoders=Shared(replace(run.encoders.encoder, normalization=normalization)))


def test_what_ten_times_the_time_cannot_pay_for_is_not_measured() -> None:
    measured_runs: list[Run] = []

    def pace(run: Run, source: Source, seconds: float = 2.0) -> Speed:
        measured_runs.append(run)
        return Pace(30.0)(run, source)

    plan(LARGE, 1.0, measure=pace)
    assert {describe_networks(run) for run in measured_runs} == {"Convolutions(widths=(32, 64, 128, 256))"}


@pytest.mark.parametrize(("minutes", "window"), [(1.0, None), (5.0, 6.0), (60.0, 10.0)])
def test_the_rung_that_is_taken_is_measured_again_where_there_is_time(minutes: float, window: float | None) -> None:
    windows: list[float] = []

    def faster_for_longer(run: Run, source: Source, seconds: float = 2.0) -> Speed:
        windows.append(seconds)
        return Pace(200.0 if seconds == 2.0 else 300.0)(run, source)

    result = make_plan(LARGE, minutes, measure=faster_for_longer)
    assert result.images_per_second == pytest.approx(
        replace(result, speed=Pace(300.0 if window else 200.0)(result.run, LARGE)).images_per_second
    )
    assert [seconds for seconds in windows if seconds != 2.0] == ([pytest.approx(window, abs=0.1)] if window else [])


def test_ten_times_the_time_is_planned_at_the_speed_of_the_second_look() -> None:
    def slow_at_first(run: Run, source: Source, seconds: float = 2.0) -> Speed:
        return Pace(30.0 if seconds == 2.0 else 300.0)(run, source)

    small = with_network(default_recipe(32), Convolutions())
    options = PlanOptions(lambda size: small, 32, keep_network=True)  # a single rung
    late, known = (make_plan(LARGE, 5.0, options, measure=measure) for measure in (slow_at_first, Pace(300.0)))
    assert late.longer.epochs == known.longer.epochs > 5 * late.run.epochs


@pytest.mark.parametrize("count", [8, 10, 33])
def test_a_handful_of_images_is_planned_for(count: int) -> None:
    result = make_plan(noise(count), 30.0, measure=Pace())
    assert result.run.epochs == 1_000 and result.run.batch_size <= count and result.run.data.hold_out == 0


def test_too_few_images_or_minutes_are_refused_in_words() -> None:
    with pytest.raises(UserError, match="found 3 images"):
        plan(noise(3), 5.0, measure=Pace())
    with pytest.raises(UserError, match=r"too little is learned in 0.1 minutes.*Convolutions.*Give [1-9] min"):
        plan(SMALL, 0.1, measure=Pace())
    with pytest.raises(UserError, match=r"ResNet\(depth=50.*sees 0\.\d images/s.*smaller network"):
        plan(SMALL, 5.0, backbone="resnet50", size=224, measure=Pace(50.0))
    for minutes in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(UserError, match="give a finite number of minutes above 0"):
            plan(SMALL, minutes, measure=Pace())


def test_the_words_of_a_plan() -> None:
    result = make_plan(noise(2_000, labels=True), 5.0, measure=Pace())
    text_of = dict(rows(result, 200))
    network = "ResNet9(width=16, features=256), views of 16 → 24 → 32 px, and 2 of 16 px"
    assert len(text_of) == 5 and text_of["network"] == network
    assert text_of["method"] == "simclr, batch 128, SGD at 0.2"
    assert text_of["epochs"] == f"{result.run.epochs} of 1,800 images, 200 held out to judge by"
    assert text_of["speed"].startswith("533 images/s here: 5 minutes, until ")
    assert text_of["in ten times the time"].startswith("ResNet9(width=")
    spare = make_plan(noise(40), 1e6, measure=Pace())
    assert dict(rows(spare))["in ten times the time"] == "the same; only more images would use it"
    assert duration(0.2) == "1 second" and duration(89.0) == "89 seconds" and duration(3_600.0) == "60 minutes"
    assert duration(6_000.0) == "1.7 hours" and duration(1290 * 3_600.0) == "54 days"
    assert len(clock(60.0)) == 5 and len(clock(90_000.0)) > 8
