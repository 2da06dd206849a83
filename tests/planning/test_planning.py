"""Plans: every recipe can be sized, more time is never worse, what the user sets wins, and mistakes are reported."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import small_run

import vantage
from vantage.composition.fitting import parts_of
from vantage.data import Arrays, Source
from vantage.data.order import steps_in
from vantage.durations import clock, duration
from vantage.encoders import Convolutions, Encoder, Momentum, ResNet, ResNet9, SplitBatchNorm, Timm
from vantage.errors import UserError
from vantage.memory import Queue
from vantage.planning import plan
from vantage.planning.ladder import rungs
from vantage.planning.plan import make_plan, rows
from vantage.planning.sizing import PlanOptions, compose, default_recipe, fit_run, with_network
from vantage.planning.speed import Speed, fixed_share, measure_speed
from vantage.planning.words import describe_networks
from vantage.recipes import RECIPES, infomin, interclr, moco_v1, moco_v2, simclr
from vantage.schedules import CosineByStep
from vantage.training.loop import resume, train
from vantage.training.optimizers import LARS, SGD, AdamW
from vantage.training.run import Data, Hardware, Run
from vantage.training.start.try_parts import try_branches
from vantage.views import ProgressiveResizing

COST = {Convolutions: 1.0, ResNet9: 1.5, ResNet: 40.0}


@dataclass(frozen=True)
class Pace:
    """A machine of a known speed."""

    images: float = 1_000.0
    """Images a second of the cheapest network at 32 px."""

    start: float = 1.0
    epoch: float = 0.1

    def __call__(self, run: Run, source: Source, seconds: float = 2.0) -> Speed:
        cost = 0.0
        for encoder in parts_of(run.encoders):
            if isinstance(encoder, Encoder):
                backbone: Any = encoder.backbone
                wide = (getattr(backbone, "width", 16) / 16) ** 1.5
                cost += COST[type(backbone)] * wide * getattr(backbone, "depth", 18) / 18
        pixels = (run.views.evaluation(0).size / 32) ** 2
        return Speed(run.batch_size * cost * pixels * run.views.count / 2 / self.images, self.epoch, self.start)


def noise(count: int, side: int = 32, labels: bool = False) -> Arrays:
    pixels = np.random.default_rng(0).integers(0, 255, (count, side, side, 3), dtype=np.uint8)
    return Arrays(pixels, np.arange(count) % 5 if labels else None, "noise")


class Mixed:
    """Photographs of many sizes, without labels."""

    classes: tuple[str, ...] = ()

    def __init__(self, count: int = 40, least: int = 50, most: int = 300) -> None:
        self.sides = np.linspace(least, most, count).astype(int).tolist()

    def __len__(self) -> int:
        return len(self.sides)

    def image(self, number: int) -> torch.Tensor:
        side = self.sides[number]
        generator = torch.Generator().manual_seed(number)
        return torch.randint(0, 256, (3, side, side + number), dtype=torch.uint8, generator=generator)

    def label(self, number: int) -> None:
        return None

    def name(self, number: int) -> str:
        return str(number)

    def fingerprint(self) -> str:
        return f"mixed-{self.sides}"


SMALL, LARGE = noise(2_000), noise(20_000, 8)


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


def test_what_ten_times_the_time_cannot_pay_for_is_not_measured() -> None:
    measured_runs: list[Run] = []

    def pace(run: Run, source: Source, seconds: float = 2.0) -> Speed:
        measured_runs.append(run)
        return Pace(30.0)(run, source)

    plan(LARGE, 1.0, measure=pace)
    assert {describe_networks(run) for run in measured_runs} == {"Convolutions()"}


@pytest.mark.parametrize(("minutes", "window"), [(1.0, None), (5.0, 6.0), (60.0, 20.0)])
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
        with pytest.raises(UserError, match="give a number above 0"):
            plan(SMALL, minutes, measure=Pace())


@pytest.mark.parametrize(
    ("side", "minutes", "size"), [(32, 60.0, 32), (48, 60.0, 32), (64, 1.0, 32), (64, 60.0, 64), (300, 10_000.0, 96)]
)
def test_views_are_as_large_as_images_and_time_allow(side: int, minutes: float, size: int) -> None:
    run = plan(noise(600, side), minutes, measure=Pace())
    assert run.views.evaluation(0).size == size


def test_photographs_of_mixed_size_are_planned_for() -> None:
    result = make_plan(Mixed(), 30.0, measure=Pace())
    assert result.run.views.evaluation(0).size == 64 and result.run.epochs == 1_000
    assert make_plan(Mixed(), 30.0, PlanOptions(size=128), measure=Pace()).run.recipe == "moco_v2"


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({"batch_size": 64}, lambda run: run.batch_size == 64 and run.learning_rate.base == pytest.approx(0.1)),
        ({"learning_rate.base": 0.7}, lambda run: run.learning_rate.base == 0.7),
        ({"epochs": 3}, lambda run: run.epochs == 3),
        ({"optimizer": AdamW()}, lambda run: run.optimizer == AdamW()),
        (
            {"seed": 9, "hardware.precision": "32-true"},
            lambda run: (run.seed, run.hardware.precision) == (9, "32-true"),
        ),
        ({"data.hold_out": 0.0}, lambda run: run.data.hold_out == 0.0),
        ({"data.hold_out": 0.3}, lambda run: run.data.hold_out == 0.3),
        ({"data.max_images": 512}, lambda run: run.data.max_images == 512),
        ({"branches.0.estimator.temperature": 0.3}, lambda run: run.branches[0].estimator.temperature == 0.3),
        ({"views.views.0.crop.size": 24}, lambda run: run.views.views[0].crop.size == 24),
        ({"monitoring.minutes": 77.0}, lambda run: run.monitoring.minutes == 77.0),
    ],
)
def test_what_the_user_sets_wins(changes: dict[str, Any], holds: Callable[[Run], bool]) -> None:
    run = plan(noise(2_000, labels=True), 5.0, measure=Pace(), changes=changes)
    assert holds(run)
    assert run.epochs == changes.get("epochs", run.epochs)


def test_epochs_follow_the_speed_of_what_was_set() -> None:
    wide = plan(SMALL, 5.0, backbone=ResNet9(64), measure=Pace())
    narrow = plan(SMALL, 5.0, backbone="ResNet9(width=8)", measure=Pace())
    assert describe_networks(wide) == "ResNet9()" and wide.epochs < narrow.epochs / 8
    assert plan(SMALL, 5.0, size=16, measure=Pace()).epochs > 3 * plan(SMALL, 5.0, size=32, measure=Pace()).epochs
    with pytest.raises(UserError, match="no backbone 'resnet19'"):
        plan(SMALL, 5.0, backbone="resnet19", measure=Pace())


def test_labeled_images_are_held_out_to_judge_by() -> None:
    assert plan(noise(2_000, labels=True), 5.0, measure=Pace()).data.hold_out == pytest.approx(0.1)
    assert plan(noise(40_000, 2, labels=True), 60.0, measure=Pace()).data.hold_out == pytest.approx(0.05)
    assert plan(noise(100, labels=True), 5.0, measure=Pace()).data.hold_out == 0.0  # ten tell nothing apart
    one_class = Arrays(np.zeros((300, 8, 8, 3), np.uint8), np.zeros(300, np.int64), "one")
    assert plan(one_class, 5.0, measure=Pace()).data.hold_out == 0.0
    alone = Arrays(np.zeros((300, 8, 8, 3), np.uint8), np.arange(300), "alone")
    assert plan(alone, 5.0, measure=Pace()).data.hold_out == 0.0


def test_views_grow_where_the_network_takes_any_size() -> None:
    wishes = PlanOptions(changes=lambda run: {})
    first = rungs(32, on_gpu=False)[0]
    resizing: Any = compose(wishes, first).resizing
    assert (resizing.sides, resizing.until) == ((16, 24), (0.5, 0.75))
    assert compose(wishes, replace(first, backbone=Timm("vit_tiny_patch16_224"))).resizing is None
    assert compose(wishes, replace(first, size=16)).resizing is None
    assert compose(PlanOptions(simclr), first).resizing == resizing  # a recipe that is named grows too
    assert compose(PlanOptions(simclr), replace(first, size=128)).resizing is None
    assert all(branch.estimator.temperature == 0.2 for branch in default_recipe(32).branches)  # pyright: ignore


def test_a_plan_knows_what_small_views_cost() -> None:
    assert fixed_share(0.325, 1.0, 0.25) == pytest.approx(0.1)
    assert (fixed_share(0.2, 1.0, 0.25), fixed_share(1.2, 1.0, 0.25)) == (0.0, 1.0)

    def measure(run: Run, source: Source, seconds: float = 2.0) -> Speed:
        return replace(Pace()(run, source, seconds), fixed=0.456)

    run = plan(noise(1_000), 5.0, measure=measure)
    assert run.resizing is not None and run.resizing.fixed == 0.46
    chosen = {"resizing": ProgressiveResizing((20,), (0.5,))}
    options = PlanOptions(changes=lambda run: chosen)
    assert make_plan(noise(1_000), 5.0, options, measure=measure).run.resizing == chosen["resizing"]


def test_short_runs_change_momentum_rate_and_lars() -> None:
    def at(recipe: Callable[[int], Run], epochs: int, **wishes: Any) -> Run:
        rung = replace(rungs(32, on_gpu=False)[0], backbone=None)
        return fit_run(PlanOptions(recipe, **wishes), recipe(rung.size), 2_560, epochs)

    short, long = at(moco_v2, 10), at(moco_v2, 2_000)
    assert isinstance(short.encoders, Momentum) and short.encoders.momentum(0) == pytest.approx(0.9)
    assert short.learning_rate.base == pytest.approx(0.12) and short.learning_rate.warmup_epochs == 1
    assert isinstance(long.encoders, Momentum) and long.encoders.momentum(0) == 0.99
    assert long.learning_rate.base == pytest.approx(0.03) and long.learning_rate.warmup_epochs == 0
    assert isinstance(at(simclr, 10).optimizer, SGD) and at(simclr, 10).learning_rate.base == pytest.approx(0.2)
    assert isinstance(at(simclr, 2_000).optimizer, LARS)
    assert isinstance(at(simclr, 10, keep_optimizer=True).optimizer, LARS)
    drops: Any = at(moco_v1, 10).learning_rate
    assert drops.milestones == (6, 8) and drops.warmup_epochs == 1
    rate = CosineByStep(0.01)
    assert (
        fit_run(PlanOptions(changes=lambda run: {"learning_rate": rate}), default_recipe(32), 2_560, 10).learning_rate
        == rate
    )


def test_a_jigsaw_and_groups_of_batchnorm_follow() -> None:
    run = plan(noise(64), 5.0, infomin, measure=Pace())
    groups = [part.groups for part in parts_of(run.encoders) if isinstance(part, SplitBatchNorm)]
    assert groups == [1] and run.batch_size == 8
    heads = [part.jigsaw.patch.hidden for part in parts_of(run.encoders) if isinstance(part, Encoder)]
    assert heads == [part.backbone.build().width for part in parts_of(run.encoders) if isinstance(part, Encoder)]


def test_on_a_gpu_there_are_resnets() -> None:
    for side, best in ((32, 32), (64, 64), (500, 224)):
        ladder = rungs(side, on_gpu=True)
        assert all(isinstance(rung.backbone, ResNet) and rung.size <= best for rung in ladder)
        assert ladder[0].backbone.depth == 18 and ladder[-1].backbone.depth == 50  # pyright: ignore
        assert [rung.size for rung in ladder] == sorted(rung.size for rung in ladder)
        assert ladder[-1].size == best and ladder[0].images == 0


def test_the_words_of_a_plan() -> None:
    result = make_plan(noise(2_000, labels=True), 5.0, measure=Pace())
    text_of = dict(rows(result, 200))
    assert len(text_of) == 5 and text_of["network"] == "ResNet9(width=16, features=256), views of 16 → 24 → 32 px"
    assert text_of["method"] == "simclr, batch 128, SGD at 0.2"
    assert text_of["epochs"] == f"{result.run.epochs} of 1,800 images, 200 held out to judge by"
    assert text_of["speed"].startswith("667 images/s here: 5 minutes, until ")
    assert text_of["in ten times the time"].startswith("ResNet9(width=")
    assert duration(0.2) == "1 second" and duration(89.0) == "89 seconds" and duration(3_600.0) == "60 minutes"
    assert duration(6_000.0) == "1.7 hours" and duration(1290 * 3_600.0) == "54 days"
    assert len(clock(60.0)) == 5 and len(clock(90_000.0)) > 8


@pytest.mark.parametrize("recipe", ["interclr", "local_aggregation", "cmc"])
def test_what_surrounds_the_steps_is_measured_too(recipe: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    run = small_run(recipe, "")
    speed = measure_speed(run, noise(48, 16), 0.02)
    assert 0 < speed.step < 60 and 0 < speed.epoch and 0 < speed.start
    assert speed.seconds(run, 48) == speed.start + 3 * (6 * speed.step + speed.epoch) and speed.fixed is None
    growing = measure_speed(replace(run, resizing=ProgressiveResizing((12,), (0.5,))), noise(48, 16), 0.02)
    assert growing.fixed is not None and 0 <= growing.fixed <= 1


def test_the_default_is_measured_and_trains_and_resumes_to_the_same_bits(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    source, before = noise(48, 16), torch.get_rng_state()
    changes = {"hardware": Hardware("cpu", precision="32-true"), "epochs": 2, "batch_size": 8}
    run = plan(source, 1.0, backbone=Convolutions((4, 6)), size=16, changes=changes)
    assert torch.equal(torch.get_rng_state(), before)
    assert (run.epochs, run.batch_size, run.data) == (2, 8, Data())
    train(run, tmp_path / "whole", source=source)
    train(replace(run, epochs=2), tmp_path / "again", source=source)
    assert resume(tmp_path / "again", source=source).finished
    ends = [vantage.load(tmp_path / name).digest() for name in ("whole", "again")]
    assert ends[0] == ends[1]
