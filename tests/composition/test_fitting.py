"""Parts that follow the data set and the length of a run, wherever they are."""

from dataclasses import replace

import pytest

from vantage.composition.fitting import everywhere
from vantage.encoders import Momentum, SplitBatchNorm
from vantage.errors import UserError
from vantage.estimators import JCL
from vantage.memory import Queue
from vantage.negatives import Ring, Sample
from vantage.recipes import jcl_ring, moco_v2, ring_ir, ring_moco
from vantage.schedules import BetweenEpochs, ByEpoch, Constant, Linear
from vantage.training.run import Run
from vantage.training.start.try_parts import try_branches


def keep(run: Run, epoch: float) -> float:
    """The ring's outer share at an epoch of this run, whose schedule says how many steps an epoch has."""
    rule = run.branches[0].negatives[0]
    assert isinstance(rule, Ring) and isinstance(rule.keep, BetweenEpochs)
    return rule.keep(round(epoch * rule.keep.steps_per_epoch))


def test_a_ring_anneals_over_its_share_of_the_run():
    """100 of 300 epochs in the paper; a third of any run, in steps of the data set at hand."""
    for run in (ring_moco(), ring_moco(32).fit(50_000), ring_moco(32).fit(13_000), ring_ir(32).fit(500)):
        third = run.epochs / 3
        assert keep(run, 0) == 1.0 and keep(run, third + 1) == pytest.approx(0.1)
        assert keep(run, third / 2) == pytest.approx(0.55, abs=0.01)
    fitted_run = ring_moco(32).fit(13_000)
    rule = fitted_run.branches[0].negatives[0]
    assert isinstance(rule, Ring) and isinstance(rule.keep, BetweenEpochs)
    assert rule.keep.steps_per_epoch == 13_000 // fitted_run.batch_size


def test_other_epochs_and_another_batch_stretch_what_is_counted_in_epochs():
    run = ring_moco(32).fit(12_800)
    short, coarse = run.rescale(epochs=30), run.rescale(batch_size=512)
    assert (keep(short, 5), keep(short, 11)) == (pytest.approx(0.55, abs=0.01), pytest.approx(0.1))
    rule = coarse.branches[0].negatives[0]
    assert isinstance(rule, Ring) and isinstance(rule.keep, BetweenEpochs) and rule.keep.steps_per_epoch == 25
    assert keep(coarse, coarse.epochs / 6) == pytest.approx(0.55, abs=0.01)


def test_parts_fit_wherever_they_are():
    """In a memory, a rule, an estimator, a weight and an encoder's momentum."""
    course = ByEpoch(Linear(0.0, 1.0, 9))
    base = jcl_ring(32)
    branch = replace(
        base.branches[0],
        estimator=JCL(0.2, course),
        weight=course,
        negatives=(Ring(drop=course), Sample(65_536)),
    )
    assert isinstance(base.encoders, Momentum)
    run = replace(base, branches=(branch,), encoders=replace(base.encoders, momentum=course)).fit(2_560)
    fitted_branch = run.branches[0]
    ring, sample = fitted_branch.negatives
    assert isinstance(fitted_branch.memory, Queue) and fitted_branch.memory.length < 4_096
    assert isinstance(sample, Sample) and sample.count == 256
    assert isinstance(ring, Ring) and isinstance(fitted_branch.estimator, JCL) and isinstance(run.encoders, Momentum)
    for schedule in (ring.drop, fitted_branch.estimator.strength, fitted_branch.weight, run.encoders.momentum):
        assert isinstance(schedule, ByEpoch) and schedule.steps_per_epoch == 2_560 // run.batch_size
        assert schedule.every == pytest.approx(run.epochs / base.epochs)


def test_everywhere_changes_the_inside_first_and_leaves_the_rest():
    names_of_parts = []
    value = (Ring(Constant(0.5)), 3, "word")
    assert everywhere(value, lambda part: names_of_parts.append(type(part).__name__) or part) == value
    assert names_of_parts == ["Constant", "Constant", "Ring"]


def test_memories_and_groups_follow_a_batch_that_is_given():
    """The rules that fit them see the batch that is used, not one that is replaced later."""
    run_of_64, fitted_run = moco_v2(32).fit(100, batch_size=64), moco_v2(32).fit(100)
    assert (run_of_64.batch_size, fitted_run.batch_size) == (64, 8)
    assert run_of_64.encoders.encoder.normalization == SplitBatchNorm(4)  # pyright: ignore
    assert fitted_run.encoders.encoder.normalization == SplitBatchNorm(1)  # pyright: ignore
    assert moco_v2(32).fit(13_000, batch_size=512).branches[0].memory == Queue(2048)
    assert run_of_64.learning_rate.base == pytest.approx(0.03 * 64 / 256)  # pyright: ignore
    with pytest.raises(UserError, match="give at most 100"):
        moco_v2(32).fit(100, batch_size=128)


@pytest.mark.parametrize(("batch", "groups"), [(12, 8), (8, 8), (20, 8), (4, 3)])
def test_groups_that_a_batch_cannot_have_are_refused_before_anything_is_written(batch: int, groups: int):
    run = moco_v2(32).fit(100, batch_size=batch)
    encoder = replace(run.encoders.encoder, normalization=SplitBatchNorm(groups))  # pyright: ignore
    with pytest.raises(UserError, match=f"split {batch} images into {groups} groups"):
        try_branches(replace(run, encoders=replace(run.encoders, encoder=encoder)))  # pyright: ignore


def test_batches_and_sets_of_no_image_are_refused():
    for images, batch_size, words in ((10_000, 0, "batch_size is 0"), (0, 0, "batch_size is 0"), (0, None, "found 0")):
        with pytest.raises(UserError, match=f"^{words}"):
            moco_v2(32).fit(images, batch_size)
