"""The learner: one training step, on one process and on two."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import rank_cases
import ranks
import small_recipes
import torch
from references import losses as reference
from torch import Tensor
from torch.testing import assert_close

from vantage import draws
from vantage.encoders import BatchNorm, SplitBatchNorm
from vantage.errors import UserError
from vantage.learner import Learner
from vantage.recipes import RECIPES, VARIANTS, instance_discrimination_full, moco_v2, simclr
from vantage.schedules import Constant

NAMES = [f"{recipe.__name__}-grouped" for recipe in RECIPES]
NAMES += [f"{recipe.__name__}-{kind}" for recipe in rank_cases.JOINT for kind in ("plain", "joint")] + ["adaptive"]
NAMES += [f"{recipe.__name__}-accumulated" for recipe in rank_cases.ACCUMULATED]
NAMES += [f"{name}-uneven{kind}" for name in rank_cases.UNEVEN for kind in ("", "-accumulated")]


FOUR = ("jcl-grouped", "ring_moco-grouped", "interclr-grouped", "infomin-grouped", "cmc-joint", "adaptive")
FOUR += ("moco_v2-accumulated", "simclr-accumulated")
"""A case of each family; pairs of four processes share one of two groups."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Every recipe on one process with the joined batch, and on each of two."""
    two = ranks.spawn(partial(ranks.some_recipes, ()), tmp_path_factory.mktemp("ranks"))
    return ranks.one_process(), two


@pytest.mark.parametrize("name", NAMES)
def test_two_processes_equal_one(runs: tuple[dict[str, Any], list[dict[str, Any]]], name: str):
    """Losses, gradients, keys, parameters, momentum encoders and stores, over several steps, in float64."""
    equals_one(runs[0][name], [results[name] for results in runs[1]])


@pytest.mark.parametrize("name", rank_cases.UNEVEN)
def test_parts_with_unequally_many_positives_equal_the_joint_batch(name: str):
    """Each part counts by the queries of the branches in effect that have a positive."""
    kinds = f"{name}-uneven", f"{name}-uneven-accumulated"
    one, parts = (ranks.train(rank_cases.cases()[kind], wrap=False) for kind in kinds)
    assert any(first != second for first, second in parts["shares"])
    for what in ("losses", "gradients", "state"):
        assert_close(parts[what], one[what], rtol=0, atol=1e-9)


PARTED = [
    pytest.param(recipe, id=recipe.__name__, marks=[] if recipe in RECIPES else pytest.mark.slow)
    for recipe in (*RECIPES, *VARIANTS)
]


@pytest.mark.parametrize("recipe", PARTED)
def test_a_batch_in_parts_equals_the_whole_batch(recipe: Any):
    """Losses, gradients, stores, estimators, and what BatchNorm counts."""
    run = small_recipes.shrink(recipe(32), SplitBatchNorm(2))
    one, parts = (ranks.train(replace(run, accumulate=count), wrap=False) for count in (1, 2))
    for what in ("losses", "gradients", "state"):
        assert_close(parts[what], one[what], rtol=0, atol=1e-9)


@pytest.mark.slow
def test_four_processes_equal_one(tmp_path: Path):
    """The same, also where processes share a group of BatchNorm."""
    four = ranks.spawn(partial(ranks.some_recipes, FOUR), tmp_path, count=4)
    assert {frozenset(results) for results in four} == {frozenset(FOUR)}
    for name in FOUR:
        equals_one(ranks.train(rank_cases.cases()[name], wrap=False), [results[name] for results in four])


@pytest.mark.slow
def test_two_processes_equal_one_for_every_variant(tmp_path: Path):
    """The same for other settings that were published."""
    two = ranks.spawn(ranks.all_variants, tmp_path)
    for name, run in rank_cases.variants().items():
        equals_one(ranks.train(run, wrap=False), [results[name] for results in two])


def equals_one(one: dict[str, Any], several: list[dict[str, Any]]) -> None:
    """Every process has what one process has, up to rounding."""
    assert len(one["losses"]) == ranks.STEPS and len(set(one["losses"])) == ranks.STEPS
    for mine in several:
        assert_close(mine["losses"], one["losses"], rtol=0, atol=1e-9)
        for step in range(ranks.STEPS):
            assert_close(mine["gradients"][step], one["gradients"][step], rtol=0, atol=1e-9)
            assert_close(mine["keys"][step], one["keys"][step], rtol=0, atol=1e-9)
        assert mine["state"].keys() == one["state"].keys()
        for tensor_name, value in one["state"].items():
            assert_close(
                mine["state"][tensor_name],
                value,
                rtol=0,
                atol=1e-9,
                msg=lambda text, tensor_name=tensor_name: f"{tensor_name}: {text}",
            )


def first_step(run, step: int = 0, learner: Learner | None = None) -> tuple[Learner, Any, list[Tensor], Tensor]:
    learner = learner or small_recipes.learner(run)
    views, image = small_recipes.batches(step + 1, small_recipes.shapes(run))[step]
    return learner, learner(views, image, step), views, image


def test_simclr_is_nt_xent():
    """Two branches, one per direction, at half the weight; symmetric in the views; the gradient reaches both."""
    run = small_recipes.shrink(simclr(32), BatchNorm())
    learner, step, views, image = first_step(run)
    joint = torch.stack(views, 1).flatten(0, 1)
    vectors = learner.networks.network(joint).unflatten(0, (-1, 2))  # pyright: ignore
    expected = reference.nt_xent(vectors[:, 0], vectors[:, 1], run.branches[0].estimator.temperature)  # pyright: ignore
    assert_close(step.loss, expected, rtol=0, atol=1e-10)
    parameters = list(learner.networks.parameters())
    gradient = torch.autograd.grad(step.loss, parameters, retain_graph=True)
    for ours, theirs in zip(gradient, torch.autograd.grad(expected, parameters), strict=True):
        assert_close(ours, theirs, rtol=0, atol=1e-10)
    swapped_step = learner(list(reversed(views)), image, 0)
    assert_close(swapped_step.loss, step.loss, rtol=0, atol=1e-12)


def test_moco_is_its_loop_and_follows_slowly():
    run = small_recipes.shrink(moco_v2(32), None)
    learner, step, views, image = first_step(run)
    fast, slow = learner.networks.network, learner.networks.slow  # pyright: ignore
    queue, store = learner.store(0).vector.clone(), learner.store(0)  # pyright: ignore
    temperature = run.branches[0].estimator.temperature  # pyright: ignore
    expected = reference.moco(fast(views[0]), slow(views[1]), queue, temperature)  # pyright: ignore
    assert_close(step.loss, expected, rtol=0, atol=1e-10)
    step.loss.backward()
    assert all(parameter.grad is None for parameter in slow.parameters())  # pyright: ignore
    learner.after_step([step.fresh], 0)
    assert torch.equal(store.vector[:8], step.fresh.vectors[1]) and int(store.oldest) == 8  # pyright: ignore
    assert store.image[:8].tolist() == image.tolist()  # pyright: ignore


def test_full_softmax_over_a_bank_is_its_loop():
    run = small_recipes.shrink(instance_discrimination_full(32), None)
    learner, step, views, image = first_step(run)
    features = learner.networks.network(views[0])  # pyright: ignore
    numbers = image.tolist()
    others = [[j for j in range(small_recipes.IMAGES) if j != number] for number in numbers]
    bank = learner.store(0).vector  # pyright: ignore
    expected = reference.instance_discrimination(features, bank, numbers, others, 0.1)
    assert_close(step.loss, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_a_copy_loaded_from_the_state_continues_bit_by_bit(recipe):
    """The state_dict is the run's: nothing that matters is outside of it."""
    run = small_recipes.shrink(recipe(32), SplitBatchNorm(2))
    one = small_recipes.learner(run)
    optimizer = torch.optim.SGD([p for p in one.parameters() if p.requires_grad], lr=0.1)

    def go(learner: Learner, optimizer: torch.optim.Optimizer, steps: range) -> list[float]:
        losses = []
        for number in steps:
            views, image = small_recipes.batches(number + 1, small_recipes.shapes(run))[number]
            learner.before_step(number)
            step = learner(views, image, number)
            optimizer.zero_grad()
            step.loss.backward()
            optimizer.step()
            learner.after_step([step.fresh], number)
            losses.append(float(step.loss.detach()))
        return losses

    go(one, optimizer, range(2))
    torch.manual_seed(99)
    two = Learner(run.encoders, run.branches, images=small_recipes.IMAGES, seed=run.seed).double()
    two.load_state_dict(one.state_dict())
    other = torch.optim.SGD([p for p in two.parameters() if p.requires_grad], lr=0.1)
    assert go(one, optimizer, range(2, 5)) == go(two, other, range(2, 5))
    assert all(
        torch.equal(a, b) or a.isnan().all()
        for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True)
    )


def test_a_positive_is_never_among_its_own_negatives():
    """A perfect encoder's loss goes to 0; it would stay above log 2 if keys were written first."""
    run = small_recipes.shrink(moco_v2(32), None)
    sharp = replace(run.branches[0], estimator=replace(run.branches[0].estimator, temperature=0.01))  # pyright: ignore
    learner = small_recipes.learner(replace(run, branches=(sharp,)))
    learner.store(0).vector.copy_(-torch.ones(10, 6).double() / 6**0.5)  # pyright: ignore
    views, image = small_recipes.batches(1, 1)[0]
    loss = learner([views[0], views[0]], image, 0).loss
    assert float(loss.detach()) < 0.69


def test_weights_follow_the_step_and_losses_add_up():
    run = small_recipes.shrink(simclr(32), None)
    one, two = run.branches
    learner = small_recipes.learner(run)
    views, image = small_recipes.batches(1, 2)[0]

    def loss(*weights: float) -> float:
        branches = tuple(replace(b, weight=Constant(w)) for b, w in zip((one, two), weights, strict=True))
        other = Learner(run.encoders, branches, images=small_recipes.IMAGES, seed=0).double()
        other.load_state_dict(learner.state_dict())
        return float(other(views, image, 0).loss.detach())

    assert abs(loss(0.25, 2.0) - (0.25 * loss(1.0, 0.0) + 2.0 * loss(0.0, 1.0))) < 1e-12


def test_negatives_differ_from_step_to_step_but_not_from_call_to_call():
    run = small_recipes.shrink([r for r in RECIPES if r.__name__ == "instance_discrimination"][0](32), None)
    learner = small_recipes.learner(run)
    views, image = small_recipes.batches(1, 1)[0]
    losses = [float(learner(views, image, step).loss.detach()) for step in (0, 0, 1)]
    assert losses[0] == losses[1] != losses[2]


def test_seeds_belong_to_images_not_to_places():
    image = torch.tensor([3, 1, 2])
    assert torch.equal(draws.query_seeds(0, 5, image).flip(0), draws.query_seeds(0, 5, image.flip(0)))


def test_misfits_are_refused():
    run = small_recipes.shrink(simclr(32), None)
    with pytest.raises(UserError, match="at least one Branch"):
        Learner(run.encoders, (), images=3, seed=0)
    views, image = small_recipes.batches(1, 1)[0]
    with pytest.raises(UserError, match="need 2 views, but 1"):
        small_recipes.learner(run)(views, image, 0)
