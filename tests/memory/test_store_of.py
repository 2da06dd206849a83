"""One store for two branches, and the labels that a bank starts with."""

from dataclasses import replace

import pytest
import small_recipes
import torch

from vantage.branch import owners
from vantage.errors import UserError
from vantage.memory import Apart, Bank, Blocks, LabeledBank, ReclusteredBank, StoreOf, Together
from vantage.recipes import instance_discrimination, interclr, pirl
from vantage.records import Keys
from vantage.training.start.try_parts import try_branches


@pytest.mark.parametrize("recipe", [interclr, pirl], ids=lambda recipe: recipe.__name__)
def test_both_branches_share_one_store(recipe):
    run = small_recipes.shrink(recipe(32), None)
    learner = small_recipes.learner(run)
    assert learner.store(1) is learner.store(0) and list(learner.stores) == ["0"]
    apart = replace(run, branches=(run.branches[0], replace(run.branches[1], memory=run.branches[0].memory)))
    twice = small_recipes.learner(apart)
    assert len(twice.stores) == 2
    twice.store(0).load_state_dict(learner.store(0).state_dict())
    twice.store(1).load_state_dict(learner.store(0).state_dict())
    for step, (views, image) in enumerate(small_recipes.batches(3, small_recipes.shapes(run))):
        step_loss, other = learner(views, image, step), twice(views, image, step)
        assert torch.equal(step_loss.loss, other.loss), "one bank says what two equal ones say"
        learner.after_step([step_loss.fresh], step)
        twice.after_step([other.fresh], step)


def test_a_missing_store_is_refused():
    base = small_recipes.shrink(instance_discrimination(32), None)
    (branch,) = base.branches
    for branches in (
        (replace(branch, memory=StoreOf(0)),),
        (branch, replace(branch, memory=StoreOf(1))),
        (branch, replace(branch, memory=StoreOf(5))),
        (branch, replace(branch, memory=StoreOf(0)), replace(branch, memory=StoreOf(1))),
    ):
        with pytest.raises(UserError, match="earlier one with a memory of its own"):
            try_branches(replace(base, branches=branches))
    with pytest.raises(UserError, match="numbered from 0"):
        StoreOf(-1)
    fine = (branch, replace(branch, memory=Bank(0.3)), replace(branch, memory=StoreOf(1)))
    assert owners(fine) == [0, 1, 1]
    try_branches(replace(base, branches=fine))


def test_images_start_apart_or_together():
    image = torch.arange(9)
    assert torch.equal(Apart().of(image), image) and not Together().of(image).any()
    bank = ReclusteredBank(clusters=3, clusterings=2, start=Together()).build(9, 4)
    assert not bank.label.any() and bank.label.shape == (9, 2)
    assert ReclusteredBank(images_per_cluster=128).fit_to(12_800, 8).clusters == 100
    with pytest.raises(UserError, match="images_per_cluster"):
        ReclusteredBank(images_per_cluster=0)


def test_given_labels_stay():
    """Blocks differ in size by at most one image, no matter how many there are; a bank writes rows and keeps labels."""
    for images, count in ((9, 3), (10, 4), (3, 7)):
        label = Blocks(count).of(torch.arange(images))
        sizes = label.bincount()
        assert len(sizes) == min(images, count) and sizes.max() - sizes.min() <= 1 and bool((label.diff() >= 0).all())
    with pytest.raises(UserError, match="count"):
        Blocks(0)
    store = LabeledBank(0.25, Blocks(3)).build(9, 4)
    rows = torch.nn.functional.normalize(torch.randn(9, 4), dim=1)
    store.begin(Keys(rows, torch.arange(9)))
    fresh = torch.nn.functional.normalize(torch.randn(2, 4), dim=1)
    for _ in range(2):
        store.write(Keys(fresh, torch.tensor([8, 0])))
    pool = store.read(Keys(fresh, torch.tensor([8, 0])))
    assert pool.clusters[:, 0].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert torch.equal(pool.vector[1:8], rows[1:8])
    once = torch.nn.functional.normalize(0.25 * rows[0] + 0.75 * fresh[1], dim=0)
    torch.testing.assert_close(pool.vector[0], torch.nn.functional.normalize(0.25 * once + 0.75 * fresh[1], dim=0))
