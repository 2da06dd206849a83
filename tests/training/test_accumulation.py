"""A step in accumulated parts computes what a step with the whole batch does."""

from dataclasses import dataclass, replace
from typing import Literal

import pytest
import torch
from in_parts import RememberedOfSome, assert_parts_equal_the_whole, exact, two_steps
from sessions import session
from small_runs import in_groups, small_run
from torch import Tensor
from torch.testing import assert_close

from vantage.data import Batch
from vantage.encoders import Momentum
from vantage.learner import Fresh
from vantage.memory import Bank, InBatch, Queue
from vantage.positives import Positives
from vantage.records import Keys, Pool, Scores
from vantage.schedules import Constant
from vantage.training.feed import Feed
from vantage.views import Augmentation, Views


class Recorder:
    """A feed that keeps the views it made."""

    def __init__(self, feed: Feed) -> None:
        self.feed, self.steps = feed, feed.steps
        self.batches: list[tuple[Batch, list[Tensor]]] = []

    def views_of(self, batch: Batch, generator: torch.Generator) -> list[Tensor]:
        views = self.feed.views_of(batch, generator)
        self.batches.append((batch, views))
        return views


@pytest.mark.parametrize("accumulate", [1, 2, 4])
@pytest.mark.parametrize("every", [1, 2])
def test_a_batch_in_parts_has_the_gradient_of_the_whole(every: int, accumulate: int, images_path: str, monkeypatch):
    """Also if few queries have a positive, and in each part another number of them."""
    run = in_groups(small_run("instance_discrimination", images_path), 4)
    run = replace(run, branches=(replace(run.branches[0], positives=RememberedOfSome(every)),))
    one, other = session(replace(run, accumulate=accumulate)), session(run)
    recorder, gradients = Recorder(one.feed), []
    one.feed = recorder  # pyright: ignore[reportAttributeAccessIssue]
    take = one.optimizer.step

    def step() -> None:
        gradients.extend(weight.grad.clone() for weight in one.learner.parameters() if weight.grad is not None)
        take()

    monkeypatch.setattr(one.optimizer, "step", step)
    batch = next(iter(recorder.feed.batches(0, 0)))
    loss = one.step(batch, 0)
    parts = recorder.batches
    assert len(parts) == accumulate and all(len(part.image) == 8 // accumulate for part, _ in parts)
    assert torch.equal(torch.cat([part.image for part, _ in parts]), batch.image)
    assert torch.equal(torch.cat([part.pixels[0] for part, _ in parts]), batch.pixels[0])
    joint = [torch.cat(views) for views in zip(*(views for _, views in parts), strict=True)]
    result = other.learner(joint, batch.image, 0)  # groups of BatchNorm are those of the whole batch
    expected = result.loss
    counts = (batch.image % every != 1).view(accumulate, -1).sum(1).tolist()
    assert sum(counts) == 8 * result.fresh.shares[0] and len(set(counts)) == (1 if every == 1 else min(accumulate, 3))
    assert_close(loss, expected.detach(), rtol=0, atol=1e-6)
    assert one.monitor.read()["loss"] == float(loss)
    expected_gradients = torch.autograd.grad(expected, list(other.learner.parameters()))
    for ours, theirs in zip(gradients, expected_gradients, strict=True):
        assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    other.learner.after_step([Fresh(*result.fresh)], 0)
    assert_close(one.learner.store(0).vector, other.learner.store(0).vector)  # every part was remembered
    assert all(weight.grad is None for weight in one.learner.parameters())


@pytest.mark.parametrize("accumulate", [2, 4])
def test_parts_see_the_views_of_the_whole_batch(accumulate: int, images_path: str):
    """So that runs that differ only in their parts are paired, like those on other numbers of processes."""
    run = in_groups(small_run("moco_v2", images_path), 4)
    seen = list[list[Tensor]]()
    for some in (run, replace(run, accumulate=accumulate)):
        one = session(some)
        recorder = Recorder(one.feed)
        one.feed = recorder  # pyright: ignore[reportAttributeAccessIssue]
        one.step(next(iter(recorder.feed.batches(0, 0))), 3)
        seen.append([torch.cat(views) for views in zip(*(views for _, views in recorder.batches), strict=True)])
    for whole, joint in zip(*seen, strict=True):
        assert_close(joint, whole, rtol=0, atol=1e-6)


def test_parts_of_the_first_batch_share_one_normalizer(images_path: str):
    """`NCE` sees both before it has a loss, and BatchNorm counts the batch once."""
    run = in_groups(small_run("instance_discrimination_nce", images_path), 2)
    one, other = session(replace(run, accumulate=2)), session(run)
    recorder = Recorder(one.feed)
    one.feed = recorder  # pyright: ignore[reportAttributeAccessIssue]
    batches = list(recorder.feed.batches(0, 0))
    loss = one.step(batches[0], 0)
    shown, parts = recorder.batches[:2], recorder.batches[2:]
    assert len(parts) == 2 and all(map(torch.equal, *([part[1][0] for part in pair] for pair in (shown, parts))))
    joint = [torch.cat(views) for views in zip(*(views for _, views in parts), strict=True)]
    result = other.learner(joint, batches[0].image, 0)
    assert_close(loss, result.loss.detach(), rtol=1e-6, atol=0)
    other.learner.after_step([Fresh(*result.fresh)], 0)
    ours = dict(one.learner.named_buffers())
    for name, value in other.learner.named_buffers():
        assert_close(ours[name], value, rtol=1e-5, atol=1e-6)
    one.step(batches[1], 1)
    assert len(recorder.batches) == 6, "only the first batch is shown before"


IN_PARTS = (
    *("moco_v2_multi_crop", "infomin", "jcl_ring", "interclr_moco", "everything"),  # shuffle-BN
    *("cmc_softmax", "pirl", "interclr"),  # banks
    *("simclr", "debiased", "hcl"),  # comparisons within the batch
)
FAST = ("everything", "cmc_softmax", "hcl")
"""One of each kind."""


@pytest.mark.parametrize(
    "recipe", [pytest.param(each, marks=() if each in FAST else pytest.mark.slow) for each in IN_PARTS]
)
def test_parts_compute_what_the_whole_batch_does(recipe: str, images_path: str):
    assert_parts_equal_the_whole(exact(small_run(recipe, images_path)), 2)


@dataclass(frozen=True)
class InFloat32:
    """What another rule takes, if vectors have the precision of losses."""

    rule: Positives

    def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Pool, step: int) -> Scores:
        """Its positives."""
        assert {each.vector.dtype for each in (query, *keys)} == {torch.float32}
        return self.rule(query, keys, pool, step)


@pytest.mark.parametrize("recipe", ["moco_v2", "simclr"])
def test_vectors_of_parts_keep_their_precision_beside_networks_in_bfloat16(recipe: str, images_path: str, monkeypatch):
    """Fabric rounds every tensor that it hands to a model, and a bfloat16 cosine cannot rank keys."""
    monkeypatch.setattr("vantage.training.computing.launch.has_bf16", lambda on_cuda: True)
    run = in_groups(small_run(recipe, images_path), 2)
    branches = tuple(replace(branch, positives=InFloat32(branch.positives)) for branch in run.branches)
    run = replace(run, branches=branches, hardware=replace(run.hardware, precision="bf16-mixed"))
    (losses, _), (losses_of_parts, _) = two_steps(run), two_steps(replace(run, accumulate=2))
    assert losses_of_parts == pytest.approx(losses, rel=1e-2)


@pytest.mark.parametrize("shuffle", ["images", "keys"])
def test_as_many_parts_as_groups_still_shuffle_keys(shuffle: Literal["images", "keys"], images_path: str):
    """Within one part of one group, a key would be normalized with its query's own images."""
    run = exact(small_run("jcl", images_path), 4)
    assert isinstance(run.encoders, Momentum)
    assert_parts_equal_the_whole(replace(run, encoders=replace(run.encoders, shuffle=shuffle)), 4)


def test_queries_are_compared_with_the_momentum_encoders_keys_of_all_parts(images_path: str):
    """Without a memory, as in MoCo v3."""
    run = exact(small_run("moco_v2", images_path))
    assert_parts_equal_the_whole(replace(run, branches=(replace(run.branches[0], memory=InBatch()),)), 2)


def test_parts_may_have_views_of_several_sizes(images_path: str):
    """Views of one size are encoded together, so they do not come in the order of their numbers."""
    run = exact(small_run("simclr", images_path))
    assert isinstance(run.views, Views)
    first = run.views.views[0]
    assert isinstance(first, Augmentation) and first.crop is not None
    small = replace(first, crop=replace(first.crop, size=8))
    branch = run.branches[0]
    branches = (replace(branch, query=0, keys=(1,), pool=None), replace(branch, query=1, keys=(2,), pool=None))
    branches = (*branches, replace(branch, query=2, keys=(0,), pool=None))
    assert_parts_equal_the_whole(replace(run, views=Views((first, small, first)), branches=branches), 2)


def test_parts_may_have_negatives_of_the_batch_beside_a_memory(images_path: str):
    """The queue is written in the order of the joint batch."""
    run = exact(small_run("simclr", images_path), 4)
    queue = replace(run.branches[0], memory=Queue(24))
    assert_parts_equal_the_whole(replace(run, branches=(*run.branches, queue)), 4)


def test_a_part_that_is_encoded_twice_draws_the_same_numbers_twice(images_path: str, monkeypatch):
    """Else the gradient would be that of other vectors."""
    run = exact(small_run("simclr", images_path))
    one, vectors = session(replace(run, accumulate=2)), list[Tensor]()
    dropout = torch.nn.Dropout(0.5)
    one.learner.networks.encoders[0].register_forward_hook(lambda _, __, rows: dropout(rows))
    encode = one.learner.encode

    def keep(views: list[Tensor], orders: dict[int, Tensor]) -> tuple[dict[int, Tensor], dict[int, Tensor]]:
        queries, keys = encode(views, orders)
        vectors.append(queries[0].detach())
        return queries, keys

    monkeypatch.setattr(one.learner, "encode", keep)
    one.step(next(iter(one.feed.batches(0, 0))), 0)
    first, second, again, and_again = vectors
    assert torch.equal(first, again) and torch.equal(second, and_again)
    assert (first == 0).any()


@pytest.mark.parametrize("accumulate", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("recipe", ["pirl", "interclr_moco", "simclr"])
def test_parts_whose_branches_drop_different_queries_compute_what_the_whole_batch_does(
    recipe: str, accumulate: int, images_path: str
):
    """Each branch is a mean over its own queries with a positive, of which a part has few and another many."""
    run = exact(small_run(recipe, images_path), 4)
    first = run.branches[0]
    other = replace(first, memory=Bank(), keys=(), pool=first.pool_views, weight=Constant(-0.3))
    branches = (replace(other, positives=RememberedOfSome(every)) for every in (2, 3))
    assert_parts_equal_the_whole(replace(run, branches=(*run.branches, *branches)), accumulate)


@pytest.mark.parametrize(("every", "weight", "passes"), [(None, 0.5, 1), (2, 0.5, 2), (2, 0.0, 1)])
def test_parts_are_computed_once_more_only_if_branches_may_drop_different_queries(
    every: int | None, weight: float, passes: int, images_path: str
):
    run = in_groups(small_run("pirl", images_path), 2)
    positives = run.branches[0].positives if every is None else RememberedOfSome(every)
    other = replace(run.branches[1], positives=positives, weight=Constant(weight))
    one = session(replace(run, branches=(run.branches[0], other), accumulate=2))
    recorder = Recorder(one.feed)
    one.feed = recorder  # pyright: ignore[reportAttributeAccessIssue]
    one.step(next(iter(recorder.feed.batches(0, 0))), 0)
    assert len(recorder.batches) == 2 * passes
