"""A run's own checks, and how it follows another batch or other epochs."""

from dataclasses import replace

import pytest
from small_recipes import TwoLayers

from vantage import Data, Hardware, Monitoring, Run, moco_v2, ring_ir, ring_moco, simclr
from vantage.encoders import BatchNorm, Encoder, LinearHead, Momentum, Shared
from vantage.errors import UserError
from vantage.negatives import Ring, Rule
from vantage.schedules import BetweenEpochs, Constant, FollowsLoss, Linear
from vantage.training.start.try_parts import try_branches


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Data(num_workers=-1), "data.num_workers is -1: give at least 0"),
        (lambda: Data(resident_bytes=-1), "data.resident_bytes is -1"),
        (lambda: Hardware(devices=0), "hardware.devices is 0: give at least 1"),
        (lambda: Hardware(nodes=0), "hardware.nodes is 0"),
        (lambda: Monitoring(log_every=0), "monitoring.log_every is 0: give at least 1"),
        (lambda: Monitoring(checkpoint_minutes=float("nan")), "monitoring.checkpoint_minutes is nan"),
        (lambda: Monitoring(knn_every=-1), "monitoring.knn_every is -1"),
        (lambda: simclr(32).rescale(epochs=-3), "^epochs is -3: give at least 1"),
        (lambda: simclr(32).rescale(batch_size=0), "^batch_size is 0: give at least 1"),
    ],
)
def test_numbers_that_make_no_sense_are_refused_by_name(build, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build()


def test_resized_scales_the_rate_and_stretches_its_course() -> None:
    run = simclr(32)
    other = run.rescale(batch_size=run.batch_size // 2, epochs=run.epochs // 2)
    assert (other.batch_size, other.epochs) == (run.batch_size // 2, run.epochs // 2)
    middle = run.learning_rate(10 * run.epochs // 2, 10, run.epochs)
    assert other.learning_rate(10 * other.epochs // 2, 10, other.epochs) == pytest.approx(middle / 2)


def test_a_batch_without_negatives_is_refused() -> None:
    alone = simclr(32).rescale(batch_size=1)
    with pytest.raises(UserError, match="branch 0 cannot work: with 1 image.* no query meets a negative"):
        try_branches(alone)
    plain = Shared(Encoder(TwoLayers(normalized=False), LinearHead(6)))
    try_branches(replace(simclr(32).rescale(batch_size=4), accumulate=4, encoders=plain))  # parts meet each other
    try_branches(simclr(32).rescale(batch_size=2))
    queue = moco_v2(32).rescale(batch_size=1)
    assert isinstance(queue.encoders, Momentum)
    encoder = replace(queue.encoders.encoder, normalization=BatchNorm())
    try_branches(replace(queue, encoders=replace(queue.encoders, encoder=encoder)))  # a queue holds others


def _with_rule(run: Run, *rules: Rule) -> Run:
    branch = run.branches[0]
    return replace(run, branches=(replace(branch, negatives=(*rules, *branch.negatives[len(rules) :])),))


def test_a_share_that_will_be_none_is_refused_at_once() -> None:
    run = ring_ir(32)
    below = _with_rule(run, Ring(BetweenEpochs(Linear(1.0, -0.2, 100), steps_per_epoch=3)))
    try_branches(below)  # the first step alone
    try_branches(below, steps=240)  # ends before the line does
    with pytest.raises(UserError, match=r"branch 0 cannot work: Ring.keep is -0.2 at step 599: a share must lie in"):
        try_branches(below, steps=600)
    with pytest.raises(UserError, match=r"Ring.drop is 1.5 at step 9"):
        try_branches(_with_rule(ring_moco(32), Ring(Constant(0.5), Linear(0.1, 1.5, 8))), steps=10)
    with pytest.raises(UserError, match=r"Ring.keep is -0.1 at step 9"):  # wherever the loss leads it
        try_branches(_with_rule(run, Ring(FollowsLoss(1.0, -0.1))), steps=10)
    for recipe in (ring_ir, ring_moco):
        try_branches(recipe(32), steps=100_000)
