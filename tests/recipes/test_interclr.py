"""InterCLR and local aggregation as wholes: their loops, and the identities of their choices."""

from dataclasses import replace

import pytest
import small_recipes
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from references import losses as reference
from torch import Tensor
from torch.testing import assert_close

from vantage.branch import Branch, owners
from vantage.draws import mix
from vantage.learner import Learner
from vantage.memory import ClusteredBank, OnlineStore, ReclusteredStore
from vantage.negatives import Count, Distinct, Easiest, Hardest, OtherClusters, Rule, Sample, Share, Subset
from vantage.partition import negatives_of
from vantage.recipes.interclr import interclr, interclr_moco
from vantage.recipes.local_aggregation import local_aggregation
from vantage.records import Keys, Scores
from vantage.schedules import Constant
from vantage.training.run import Run

RECIPES = (interclr, interclr_moco, local_aggregation)


def learner_after(run: Run, steps: int = 4) -> Learner:
    """A learner whose banks were written in `steps` steps of 8 of 24 images: clusters are made after three."""
    learner = small_recipes.learner(run)
    for step, (views, image) in enumerate(small_recipes.batches(steps, learner.views)):
        with torch.no_grad():
            learner.after_step([learner(views, image, step).fresh], step)
    return learner


def queries_and_keys(learner: Learner, step: int) -> tuple[list[Tensor], Tensor, dict[int, Tensor]]:
    views, image = small_recipes.batches(step + 1, learner.views)[step]
    return views, image, learner.networks.queries({0: views[0]})


def bank(learner: Learner, branch: int) -> OnlineStore | ReclusteredStore:
    store = learner.store(branch)
    assert isinstance(store, OnlineStore | ReclusteredStore)
    return store


@pytest.mark.parametrize("recipe", [interclr, interclr_moco], ids=lambda recipe: recipe.__name__)
def test_interclr_is_its_loop(recipe):
    """λ times the mean over images of the intra loss and 1 − λ times that of MarginNCE, with labels of before."""
    run = small_recipes.shrink(recipe(32), None)
    learner = learner_after(run)
    views, image, queries = queries_and_keys(learner, 4)
    result, store, step = learner(views, image, 4), bank(learner, 1), 4
    assert len(store.label.unique()) == 4, "clusters were made"
    query = Keys(
        queries[0], image, store.label[image], synthetic.query_seeds(run.seed, step, image), mix(run.seed, step)
    )
    temperature = run.branches[0].estimator.temperature  # pyright: ignore
    near, far = [], []
    pool = store.read(query)
    mate = run.branches[1].positives(query, (), pool, step).key[:, 0]
    scores = negatives_of(query, pool, run.branches[1].negatives, step)
    for i, own in enumerate(image.tolist()):
        assert store.label[mate[i]] == store.label[own]
        near.append([reference.dot(query.vector[i], store.vector[mate[i]])])
        keys = scores.key[i][scores.keep[i]].tolist()
        assert keys and all(store.label[j] != store.label[own] for j in keys)
        far.append([reference.dot(query.vector[i], store.vector[j]) for j in keys])
    inter = torch.stack(reference.info_nce(near, far, temperature, -0.5)).mean()
    if recipe is interclr:
        own_bank = learner.store(0).vector  # pyright: ignore
        columns = Sample(7).blindly(query, small_recipes.IMAGES).tolist()
        columns = [[j for j in row if j != own] for row, own in zip(columns, image.tolist(), strict=True)]
        intra = reference.instance_discrimination(query.vector, own_bank, image.tolist(), columns, temperature)
    else:
        slow = learner.networks.slow(views[1])  # pyright: ignore
        intra = reference.moco(query.vector, slow, learner.store(0).vector, temperature)  # pyright: ignore
    expected = 0.75 * intra + 0.25 * inter
    assert_close(result.loss, expected, rtol=0, atol=1e-10)
    parameters = [p for p in learner.networks.parameters() if p.requires_grad]
    ours = torch.autograd.grad(result.loss, parameters, retain_graph=True)
    for mine, theirs in zip(ours, torch.autograd.grad(expected, parameters), strict=True):
        assert_close(mine, theirs, rtol=0, atol=1e-10)


def test_local_aggregation_is_its_loop():
    run = small_recipes.shrink(local_aggregation(32), None)
    learner = learner_after(run)
    views, image, queries = queries_and_keys(learner, 4)
    store, query = bank(learner, 0), queries[0]
    label = store.label.tolist()
    near, far = [], []
    for i, own in enumerate(image.tolist()):
        cosine = [reference.dot(query[i], row) for row in store.vector]
        order = sorted(range(len(cosine)), key=lambda j: -float(cosine[j].detach()))[:12]  # noqa: B023
        mates = [j for j in order if any(a == b for a, b in zip(label[j], label[own], strict=True))]
        near.append([cosine[j] for j in mates])
        far.append([cosine[j] for j in order if j not in mates])
    assert all(near) and any(far)
    expected = torch.stack(reference.local_aggregation(near, far, 0.1)).mean()
    assert_close(learner(views, image, 4).loss, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("recipe", [interclr, interclr_moco], ids=lambda recipe: recipe.__name__)
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_22_lambda_leaves_one_branch(recipe, weight: float):
    run = small_recipes.shrink(recipe(32), None)
    intra, inter = run.branches
    both = (replace(intra, weight=Constant(weight)), replace(inter, weight=Constant(1 - weight)))
    (one,) = small_recipes.only(run, 0 if weight else 1).branches
    learner = learner_after(replace(run, branches=both))
    alone = Learner(run.encoders, (replace(one, weight=Constant(1.0)),), small_recipes.IMAGES, run.seed).double()
    alone.networks.load_state_dict(learner.networks.state_dict())
    alone.store(0).load_state_dict(learner.store(0 if weight else 1).state_dict())
    views, image, _ = queries_and_keys(learner, 4)
    for mine, theirs in zip(
        *(torch.autograd.grad(part(views, image, 4).loss, [p for p in part.parameters() if p.requires_grad])
          for part in (learner, alone)), strict=True,
    ):  # fmt: skip
        assert_close(mine, theirs, rtol=0, atol=1e-12)


def scores_under(rules: tuple[Rule, ...], seed: int) -> tuple[Scores, Keys, Keys]:
    label = torch.randint(3, (60, 1), generator=torch.Generator().manual_seed(seed))
    pool = replace(synthetic.keys(60, 4, seed), cluster=label)
    query = replace(synthetic.keys(5, 4, seed + 1), cluster=label[:5])
    return negatives_of(query, pool, rules, 0), query, pool


def key_sets(scores: Scores) -> list[set[int]]:
    return [set(key[keep].tolist()) for key, keep in zip(scores.key, scores.keep, strict=True)]


@given(seed=st.integers(0, 99))
def test_24_hard_lies_in_the_semi_hard_pool_and_semi_easy_below_its_threshold(seed: int):
    tenth = Share(Constant(0.1))
    pool, query, keys = scores_under((OtherClusters(), Hardest(tenth)), seed)
    others = [set((keys.clusters[:, 0] != own).nonzero()[:, 0].tolist()) for own in query.clusters[:, 0]]
    hard, semi_hard, semi_easy, far = (
        key_sets(scores_under((OtherClusters(), *rules), seed)[0])
        for rules in (
            (Hardest(Count(2)),),
            (Hardest(tenth), Distinct(2)),
            (Easiest(tenth), Distinct(2)),
            (Easiest(tenth),),
        )
    )
    for row, (candidates, near) in enumerate(zip(others, key_sets(pool), strict=True)):
        size = max(1, len(candidates) // 10)
        cosine = keys.vector @ query.vector[row]
        order = sorted(candidates, key=lambda j: -float(cosine[j]))  # noqa: B023
        assert near == set(order[:size]) and far[row] == set(order[-size:])
        assert hard[row] == set(order[:2]) and semi_hard[row] <= near and len(semi_hard[row]) == min(2, size)
        assert semi_easy[row] <= far[row] and max(cosine[list(semi_easy[row])]) <= cosine[order[-size]]


def test_24_as_many_draws_as_the_pool_has_leave_no_chance():
    tenth = Hardest(Share(Constant(0.1)))
    all_of_it, one, other = (
        key_sets(scores_under((OtherClusters(), tenth, *rules), 5)[0])
        for rules in ((), (Distinct(60, salt=1),), (Distinct(60, salt=2),))
    )
    assert all_of_it == one == other


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_one_cluster_for_all_ends_and_teaches_nothing_between_images(recipe):
    run = small_recipes.shrink(recipe(32), None)
    learner = learner_after(small_recipes.only(run, len(run.branches) - 1))
    bank(learner, 0).label.zero_()
    views, image, _ = queries_and_keys(learner, 4)
    loss = learner(views, image, 4).loss
    loss.backward()
    assert abs(float(loss.detach())) < 1e-6
    assert all(not p.grad.abs().gt(1e-12).any() for p in learner.parameters() if p.grad is not None)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
@given(images=st.integers(16, 2_000_000))
def test_a_fitted_recipe_has_clusters_and_pools_that_its_images_fill(recipe, images: int):
    run = recipe(224).fit(images)
    branch: Branch = run.branches[-1]
    memory = run.branches[owners(run.branches)[-1]].memory
    assert 2 <= memory.clusters <= max(2, images // 42)  # pyright: ignore
    if isinstance(memory, ClusteredBank):
        assert memory.smallest * memory.clusters * 4 <= images
        (subset,) = [rule for rule in branch.negatives if isinstance(rule, Subset)]
        assert subset.count == min(163_840, images), "a smaller set is taken whole, so its tenth is exact"
        assert memory.refresh_every == (10 if images >= 1_000 * run.batch_size else 1)
    else:
        near = branch.negatives[0]
        assert isinstance(near, Hardest) and isinstance(near.amount, Count)
        assert near.amount.count == branch.positives.count == min(4096, images // 4)  # pyright: ignore
