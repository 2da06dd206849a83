"""The sizes of a plan: views and networks follow images, time and what the user sets; short runs have other rates."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from known_pace import SMALL, Mixed, Pace, noise

from vantage.composition.fitting import parts_of
from vantage.data import Arrays
from vantage.encoders import Encoder, Momentum, ResNet, ResNet9, SplitBatchNorm, Timm
from vantage.errors import UserError
from vantage.negatives import Ring
from vantage.planning import plan
from vantage.planning.ladder import rungs
from vantage.planning.plan import make_plan
from vantage.planning.sizing import PlanOptions, compose, default_recipe, fit_run, override, set_early
from vantage.planning.words import describe_networks
from vantage.recipes import infomin, moco_v1, moco_v2, simclr
from vantage.schedules import BetweenEpochs, ByEpoch, CosineByStep, Linear
from vantage.training.optimizers import LARS, SGD, AdamW
from vantage.training.run import Run


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


def test_a_network_is_told_with_its_depth_even_if_that_is_the_default() -> None:
    assert describe_networks(moco_v2(32)) == "ResNet(depth=18, small=True)"


def test_epochs_follow_the_speed_of_what_was_set() -> None:
    wide = plan(SMALL, 5.0, backbone=ResNet9(64), measure=Pace())
    narrow = plan(SMALL, 5.0, backbone="ResNet9(width=8)", measure=Pace())
    assert describe_networks(wide) == "ResNet9(width=64)" and wide.epochs < narrow.epochs / 8
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


def test_the_learning_rate_follows_batch_and_epochs_unless_it_is_given() -> None:
    fitted_run = moco_v1(224)
    run = override(fitted_run, {"batch_size": 512, "epochs": 100})
    assert run.learning_rate.base == pytest.approx(0.06) and run.learning_rate.milestones == (60, 80)
    run = override(fitted_run, {"batch_size": 512, "epochs": 100, "learning_rate.base": 0.5})
    assert run.learning_rate.base == 0.5 and run.learning_rate.milestones == (60, 80)
    assert override(fitted_run, {}) == fitted_run


def test_a_schedule_in_place_of_another_counts_the_epochs_of_these_images() -> None:
    """Else Ring's keep, set to fall to .1 within two epochs, would take two of ImageNet's."""
    line, own = BetweenEpochs(Linear(1.0, 0.1, 2)), ByEpoch(Linear(1.0, 0.1, 2), steps_per_epoch=7)
    changes = {"branches.0.weight": own, "branches.0.negatives": (Ring(line),), "batch_size": 100}
    fitted_run = moco_v2(32).fit(1_000)
    for run in (
        override(fitted_run, changes, 1_000),
        fit_run(PlanOptions(changes=lambda run: changes), moco_v2(32), 1_000, epochs=10),
    ):
        ring = run.branches[0].negatives[0]
        assert isinstance(ring, Ring) and ring.keep == replace(line, steps_per_epoch=10)
        assert run.branches[0].weight == own  # a number that was given is kept


@pytest.mark.parametrize(
    ("early", "batch_size", "fitted"),
    [
        ({}, 256, 8),
        ({"hardware.devices": 2}, 256, 8),
        ({"hardware.devices": 3}, 255, 9),
        ({"hardware.devices": 3, "accumulate": 5}, 255, 15),
        ({"hardware.devices": 3, "hardware.nodes": 100}, 300, 0),
    ],
)
def test_a_recipe_fits_any_number_of_processes(early: dict[str, int], batch_size: int, fitted: int) -> None:
    recipe = simclr(32)
    run = set_early(recipe, early)
    assert run.batch_size == batch_size and run.batch_size % run.parts == 0
    assert run.learning_rate.base == pytest.approx(recipe.learning_rate.base * batch_size / 256)
    if fitted:
        assert run.fit(50).batch_size == fitted
        assert run.fit(50, run.parts).batch_size == run.parts
    else:
        with pytest.raises(UserError, match="found 50 images, but the smallest batch is 300"):
            run.fit(50)
