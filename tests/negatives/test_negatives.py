"""The contract of negative rules, and what each rule does beyond it.

A new rule needs one instance in `CONTRACT`; a public rule that is missing there
fails `test_every_rule_is_in_the_contract`.
"""

from dataclasses import fields, is_dataclass, replace
from inspect import isabstract

import pytest
import synthetic
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from score_scenes import pairs, scene
from torch import Tensor

from vantage import negatives, schedules
from vantage.errors import UserError
from vantage.negatives import (
    AbsoluteRing,
    Ball,
    Count,
    Distinct,
    Draw,
    Easiest,
    Hardest,
    OtherClusters,
    OtherImages,
    OwnCluster,
    PairRule,
    Ring,
    Rule,
    Sample,
    Share,
    Subset,
)
from vantage.partition import negatives_of
from vantage.records import Keys, Scores, score
from vantage.records.members import Members
from vantage.schedules import Constant, Linear

CONTRACT: tuple[Rule, ...] = (
    OtherImages(),
    OtherClusters(),
    OwnCluster(),
    Sample(1),
    Sample(5),
    Sample(3, salt=2),
    Distinct(4),
    Subset(8),
    Subset(3, salt=1),
    Ring(),
    Ring(Linear(0.9, 0.5, 10), Constant(0.3)),
    AbsoluteRing(Constant(0.8), Constant(0.2)),
    Ball(Constant(0.4)),
    Hardest(Count(3)),
    Hardest(Share(Constant(0.3))),
    Easiest(Count(2)),
    Easiest(),
)
"""At least one instance of every rule."""

RANDOM = (Draw, Subset)
"""Kinds that draw: independent of the order of keys in law only."""

SIZES = {
    "queries": st.integers(1, 6),
    "pool": st.integers(1, 24),
    "images": st.integers(1, 8),
    "seed": st.integers(0, 20),
}
every_rule = pytest.mark.parametrize("rule", CONTRACT, ids=str)


def test_every_rule_is_in_the_contract():
    public = {getattr(negatives, name) for name in negatives.__all__}
    kinds = {part for part in public if is_dataclass(part) and issubclass(part, Rule) and not isabstract(part)}
    assert kinds, "the module exports no rule"
    assert kinds == {type(rule) for rule in CONTRACT}


@every_rule
def test_a_rule_is_its_own_configuration(rule: Rule):
    assert isinstance(rule, Rule)
    assert replace(rule) == rule and hash(replace(rule)) == hash(rule)  # pyright: ignore
    assert eval(repr(rule), vars(negatives) | vars(schedules)) == rule
    with pytest.raises(AttributeError):
        setattr(rule, fields(rule)[0].name if fields(rule) else "anything", 1)  # pyright: ignore


@every_rule
@given(**SIZES)
def test_a_rule_only_removes(rule, queries, pool, images, seed):
    before, query, keys = scene(queries, pool, images, seed)
    after = rule(before, query, keys, 0)
    assert after.cosine.shape[0] == queries and after.key.shape == after.keep.shape == after.cosine.shape
    for row in range(queries):
        assert set(pairs(after, row)) <= set(pairs(before, row))
        for column in range(after.key.shape[1]):
            assert after.cosine[row, column] == before.cosine[row, int(after.key[row, column])]


@every_rule
@given(**SIZES)
def test_rows_stay_apart(rule, queries, pool, images, seed):
    """What a rule does to a query does not depend on which other queries are there, or where."""
    before, query, keys = scene(queries, pool, images, seed)
    together = rule(before, query, keys, 0)
    for row in range(queries):
        part = torch.tensor([row])
        alone = rule(Scores(before.cosine[part], before.key[part], before.keep[part]), query.rows(part), keys, 0)
        assert pairs(alone, 0) == pairs(together, row)
    order = torch.arange(queries).flip(0)
    scores = rule(Scores(before.cosine[order], before.key[order], before.keep[order]), query.rows(order), keys, 0)
    assert [pairs(scores, int(row)) for row in order] == [pairs(together, row) for row in range(queries)]


@every_rule
@given(**SIZES)
def test_a_rule_does_not_care_for_key_order(rule, queries, pool, images, seed):
    if isinstance(rule, RANDOM):
        return
    _, query, keys = scene(queries, pool, images, seed)
    order = torch.randperm(pool, generator=torch.Generator().manual_seed(seed))
    plain, scores = (
        rule(score(query, keys), query, keys, 0),
        rule(score(query, keys.rows(order)), query, keys.rows(order), 0),
    )
    for row in range(queries):
        assert sorted(pairs(plain, row)) == sorted(int(order[key]) for key in pairs(scores, row))


@every_rule
@given(**SIZES)
def test_no_gradient_passes_through_the_choice(rule, queries, pool, images, seed):
    """The gradient of the kept cosines is one each: as if the choice had been made beforehand."""
    before, query, keys = scene(queries, pool, images, seed)
    leaf = before.cosine.clone().requires_grad_()
    after = rule(Scores(leaf, before.key, before.keep), query, keys, 0)
    assert not after.keep.requires_grad and not after.key.requires_grad
    (gradient,) = torch.autograd.grad((after.cosine * after.keep).sum(), leaf)
    expected = torch.zeros_like(gradient).scatter_add_(1, after.key, after.keep.to(gradient.dtype))
    assert torch.equal(gradient, expected)


@every_rule
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_rule_keeps_kinds_of_numbers(rule: Rule, dtype: torch.dtype):
    query, keys = (
        replace(k, cluster=k.image[:, None] % 2)
        for k in (synthetic.keys(3, 4, 0, dtype=dtype), synthetic.keys(9, 4, 1, dtype=dtype))
    )
    after = rule(score(query, keys), query, keys, 0)
    assert (after.cosine.dtype, after.key.dtype, after.keep.dtype) == (dtype, torch.int64, torch.bool)


@pytest.mark.gpu
@every_rule
def test_a_rule_chooses_on_a_gpu_as_on_the_cpu(rule: Rule):
    before, query, keys = scene(5, 20, 4, seed=3)
    on_cpu = rule(before, query, keys, 0)

    def to_gpu(record: Keys) -> Keys:
        parts = (record.image, record.clusters, record.seed)
        gpu_parts = (None if part is None else part.cuda() for part in parts)
        return Keys(record.vector.cuda(), *gpu_parts, step_seed=record.step_seed)  # pyright: ignore

    on_gpu = rule(Scores(before.cosine.cuda(), before.key.cuda(), before.keep.cuda()), to_gpu(query), to_gpu(keys), 0)
    assert on_gpu.cosine.device.type == on_gpu.key.device.type == on_gpu.keep.device.type == "cuda"
    assert torch.equal(*(columns_of(scores) for scores in (on_cpu, on_gpu)))


def columns_of(scores: Scores) -> Tensor:
    """The keys that count, and which of them are kept; what is drawn comes in any order."""
    key, order = scores.key.cpu().sort(1)
    return torch.stack([key, scores.keep.cpu().gather(1, order)], 2)


@every_rule
def test_pair_rules_alone_stream(rule: Rule):
    """A pair rule gives on chunks of the pool what it gives on all of it; the others must not be marked as one."""
    _, query, keys = scene(4, 20, 5, seed=2)
    whole = rule(score(query, keys), query, keys, 0)
    parts = [keys.rows(slice(start, start + 6)) for start in range(0, 20, 6)]
    keep = torch.cat([rule(score(query, part), query, part, 0).keep for part in parts], 1)
    assert isinstance(rule, PairRule) == (whole.keep.shape == keep.shape and torch.equal(whole.keep, keep))


def test_other_images_drops_exactly_the_own():
    query, keys = synthetic.keys(3, 2, 0, images=3), synthetic.keys(7, 2, 1, images=3)
    after = OtherImages()(score(query, keys), query, keys, 0)
    assert [pairs(after, row) for row in range(3)] == [[1, 2, 4, 5], [0, 2, 3, 5, 6], [0, 1, 3, 4, 6]]


def test_other_images_keeps_keys_of_no_image():
    query = Keys(torch.eye(2), torch.tensor([0, 1]))
    empty = Keys(torch.eye(2), torch.tensor([-1, -1]))
    assert OtherImages()(score(query, empty), query, empty, 0).keep.all()


def test_24_no_negative_shares_a_cluster_and_own_clusters_are_the_rest():
    """With several clusterings, a pair that any of them joins shares a cluster."""
    query, keys = synthetic.keys(2, 3, 0), synthetic.keys(5, 3, 1)
    query = replace(query, cluster=torch.tensor([[0, 7], [1, 8]]))
    keys = replace(keys, cluster=torch.tensor([[0, 9], [1, 7], [2, 7], [2, 8], [3, 9]]))
    before = score(query, keys)
    other, own = (rule(before, query, keys, 0) for rule in (OtherClusters(), OwnCluster()))
    assert [pairs(other, row) for row in range(2)] == [[3, 4], [0, 2, 4]]
    assert torch.equal(own.keep, ~other.keep)


@settings(max_examples=30)
@given(clusters=st.sampled_from([2, 300]), clusterings=st.integers(1, 3), seed=st.integers(0, 50))
def test_the_index_marks_the_pairs_that_comparing_labels_marks(clusters: int, clusterings: int, seed: int):
    """Also where few labels are so common that the index is not asked, and for queries whose cluster is empty."""
    generator = torch.Generator().manual_seed(seed)
    query, keys = (
        replace(k, cluster=torch.randint(clusters + 5, (len(k), clusterings), generator=generator))
        for k in (synthetic.keys(3, 3, 0), synthetic.keys(400, 3, 1))
    )
    by_index = replace(keys, members=Members())
    before = score(query, keys)
    for rule in (OtherClusters(), OwnCluster()):
        assert torch.equal(rule(before, query, by_index, 0).keep, rule(before, query, keys, 0).keep)
    truth = (keys.clusters == query.clusters[:, None]).any(2)
    assert Members().same_cluster(keys.clusters, query.clusters, -1) is None
    same_cluster = Members().same_cluster(keys.clusters, query.clusters, truth.numel() * clusterings)
    assert same_cluster is not None
    mask = torch.zeros_like(truth)
    mask[same_cluster] = True
    assert torch.equal(mask, truth)


def test_one_cluster_for_all_leaves_no_negative_and_ends():
    query, keys = (
        replace(k, cluster=torch.zeros_like(k.image)[:, None])
        for k in (synthetic.keys(3, 3, 0), synthetic.keys(9, 3, 1))
    )
    for rules in ((OtherClusters(),), (OtherClusters(), Distinct(4)), (OtherClusters(), Sample(4))):
        assert not negatives_of(query, keys, rules, 0).keep.any()


@pytest.mark.parametrize("rule", [OtherClusters(), OwnCluster()])
def test_cluster_rules_need_clusters(rule: Rule):
    query, keys = synthetic.keys(3, 3, 0), synthetic.keys(9, 3, 1)
    with pytest.raises(UserError, match="memory that keeps them"):
        rule(score(query, keys), query, keys, 0)
