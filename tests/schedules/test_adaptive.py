"""Numbers that follow the loss or the accuracy: their rule, what learners do with them, and exact resume."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest
import small_recipes
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_runs import small_run, write_images
from torch import Tensor
from torch.testing import assert_close

from vantage.composition.codec import allowing
from vantage.errors import UserError
from vantage.learner import Learner
from vantage.negatives import Ring
from vantage.recipes import moco_v2, ring_cmc, ring_moco
from vantage.schedules import Adaptive, AdaptiveState, Constant, FollowsAccuracy, FollowsLoss, Schedule
from vantage.storage.metrics import read_metrics
from vantage.training.loop import resume, train
from vantage.training.run import Monitoring, Run
from vantage.training.session import Session

KINDS = (FollowsLoss(), FollowsAccuracy(), FollowsLoss(0.2, 0.9, 0.05, 3), FollowsAccuracy(0.5, 0.1, 0.3, 1))


def by_loop(choice: Adaptive, scores: list[float]) -> list[float]:
    """The released rule, one score after the other: harder by a step when above the mean of the window before."""
    value, values = choice.start, []
    for number, score in enumerate(scores):
        before = scores[max(0, number - choice.window) : number]
        if len(before) == choice.window:
            mean = sum(before) / choice.window
            sign = (score > mean) - (score < mean)
            value += sign * choice.by * (1 if choice.end > choice.start else -1)
            value = min(max(value, min(choice.start, choice.end)), max(choice.start, choice.end))
        values.append(value)
    return values


@pytest.mark.parametrize("choice", KINDS, ids=str)
@given(scores=st.lists(st.integers(-40, 40), min_size=1, max_size=60))
def test_it_is_its_loop(choice: Adaptive, scores: list[int]):
    state, values = choice.build(), []
    for score in scores:
        state.update(torch.tensor(score / 8))
        values.append(float(state.value))
    assert_close(torch.tensor(values), torch.tensor(by_loop(choice, [s / 8 for s in scores])), rtol=0, atol=1e-12)
    assert isinstance(choice, Schedule) and choice(0) == choice(99) == choice.start


def test_rings_values():
    assert (FollowsLoss().by, FollowsLoss().window, FollowsAccuracy().by, FollowsAccuracy().window) == (
        0.01,
        10,
        0.05,
        5,
    )
    assert FollowsLoss().start == FollowsAccuracy().start == 1.0 and FollowsLoss().end == FollowsAccuracy().end == 0.1
    for wrong in ({"by": 0.0}, {"window": 0}, {"start": float("nan")}):
        with pytest.raises(UserError):
            FollowsLoss(**wrong)  # pyright: ignore


def adaptive_run(keep: Schedule, recipe=ring_moco) -> Run:
    run = replace(small_recipes.shrink(recipe(32), None), monitoring=Monitoring(knn_every=1))
    rules = [(Ring(keep, Constant(0.25)), *branch.negatives[1:]) for branch in run.branches]
    return replace(run, branches=tuple(replace(b, negatives=r) for b, r in zip(run.branches, rules, strict=True)))


@pytest.mark.parametrize("recipe", [ring_moco, ring_cmc], ids=lambda recipe: recipe.__name__)
def test_a_learner_uses_the_present_number(recipe):
    """Each step's loss is that of the ring whose share is the value reached so far, one value for all branches."""
    choice = FollowsLoss(0.9, 0.3, 0.1, 2)
    role = adaptive_run(Constant(1.0), recipe).encoders
    learner = small_recipes.learner(adaptive_run(choice, recipe))
    assert len(learner.adapted) == 1 and isinstance(learner.adapted[0], AdaptiveState)
    losses, values_used = [], []
    for step, (views, image) in enumerate(small_recipes.batches(8, small_recipes.shapes(adaptive_run(choice, recipe)))):
        (value,) = learner.adaptive_values()
        with_constant = Learner(role, adaptive_run(Constant(value), recipe).branches, small_recipes.IMAGES, 0).double()
        with_constant.load_state_dict({n: t for n, t in learner.state_dict().items() if not n.startswith("adapted")})
        result = learner(views, image, step)
        assert torch.equal(result.loss, with_constant(views, image, step).loss)
        losses.append(float(result.loss.detach()))
        values_used.append(value)
        learner.after_step([result.fresh], step)
    assert_close(
        values_used[1:] + learner.adaptive_values(), by_loop(choice, [-loss for loss in losses]), rtol=0, atol=1e-12
    )
    assert len(set(values_used)) > 1


def test_accuracies_move_the_other_kind_only():
    learner = small_recipes.learner(adaptive_run(FollowsAccuracy(0.9, 0.3, 0.1, 1)))
    for accuracy in (10.0, 20.0, 20.0, 15.0, 30.0):
        learner.after_validation(accuracy)
    assert_close(learner.adaptive_values(), [0.9 - 0.1 + 0.1 - 0.1], rtol=0, atol=1e-12)
    views, image = small_recipes.batches(1, 2)[0]
    learner.after_step([learner(views, image, 0).fresh], 0)
    assert_close(learner.adaptive_values(), [0.8], rtol=0, atol=1e-12)


def test_misplaced_adaptive_numbers_are_refused():
    run = moco_v2(32)
    with pytest.raises(UserError, match="knn_every"):
        replace(run, branches=(replace(run.branches[0], weight=FollowsAccuracy()),))
    role = replace(run.encoders, momentum=FollowsLoss())  # pyright: ignore
    with pytest.raises(UserError, match="only numbers of branches"):
        Learner(role, run.branches, 48, 0)


@pytest.mark.slow
def test_a_run_follows_its_accuracy_and_resumes_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its values are logged, saved, and the same after an interruption in the middle."""
    base = small_run("ring_moco", write_images(tmp_path / "images.npz"), 4)
    rules = (Ring(FollowsAccuracy(1.0, 0.2, 0.3, 1), FollowsLoss(0.3, 0.1, 0.02, 2)),)
    branch = replace(base.branches[0], negatives=rules)
    monitoring = replace(base.monitoring, knn_every=1)
    run = replace(base, monitoring=monitoring)
    run = replace(run, branches=(branch,))
    step_of_session = Session.step

    def interrupt(self: Session, batch, step: int) -> Tensor:
        if step == 14:
            signal.raise_signal(signal.SIGINT)
        return step_of_session(self, batch, step)

    with allowing("tiny"):
        train(run, tmp_path / "whole")
        with monkeypatch.context() as patch:
            patch.setattr(Session, "step", interrupt)
            assert not train(run, tmp_path / "cut").finished
        resume(tmp_path / "cut")
    rows, again = read_metrics(tmp_path / "whole"), read_metrics(tmp_path / "cut")
    assert all({"knn", "adapted.0", "adapted.1"} <= set(row) for row in rows) and len(rows) == 4
    assert len({row["adapted.1"] for row in rows}) > 1
    for name in ("loss", "knn", "adapted.0", "adapted.1"):
        assert [row[name] for row in again] == [row[name] for row in rows]
