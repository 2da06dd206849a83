"""The contract of positives, and what each kind chooses."""

from dataclasses import is_dataclass, replace

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from vantage import negatives, positives, schedules
from vantage.errors import UserError
from vantage.negatives import AbsoluteRing, Ring
from vantage.positives import (
    ClusterMate,
    ClusterMates,
    FixedViews,
    NearMates,
    Neighbors,
    OtherMate,
    OtherViews,
    Positives,
    Remembered,
)
from vantage.records import Keys
from vantage.schedules import Constant

CONTRACT: tuple[Positives, ...] = (
    OtherViews(),
    FixedViews(),
    Remembered(),
    ClusterMate(),
    OtherMate(),
    ClusterMates(),
    ClusterMates(most=2),
    NearMates(5000),
    Neighbors(Remembered(), Ring(Constant(0.8), Constant(0.5))),
    Neighbors(Remembered(), AbsoluteRing(Constant(1.0), Constant(0.3))),
)
"""At least one instance of every kind of positives."""

every_kind = pytest.mark.parametrize("part", CONTRACT, ids=str)


def scene(queries: int, views: int, seed: int) -> tuple[Keys, tuple[Keys, ...], Keys]:
    """Queries, their answers, and a bank with two clusterings."""
    query, pool = synthetic.keys(queries, 3, seed), synthetic.keys(queries + 3, 3, seed + 1)
    label = torch.randint(3, (queries + 3, 2), generator=torch.Generator().manual_seed(seed))
    query, pool = replace(query, cluster=label[:queries]), replace(pool, cluster=label)
    return query, tuple(synthetic.keys(queries, 3, seed + 2 + view) for view in range(views)), pool


def test_every_kind_is_in_the_contract():
    public = {getattr(positives, name) for name in positives.__all__}
    assert {part for part in public if is_dataclass(part)} == {type(part) for part in CONTRACT}


@every_kind
def test_a_part_is_its_own_configuration(part: Positives):
    names = vars(positives) | vars(negatives) | vars(schedules)
    assert isinstance(part, Positives)
    assert replace(part) == part and eval(repr(part), names) == part  # pyright: ignore


@every_kind
@given(queries=st.integers(1, 6), views=st.integers(1, 3), seed=st.integers(0, 9))
def test_cosines_are_those_of_the_pairs_and_rows_stay_apart(part, queries, views, seed):
    query, keys, pool = scene(queries, views, seed)
    together = part(query, keys, pool, 0)
    assert together.keep.any(1).all()
    assert together.cosine.abs().max() <= 1 + 1e-12
    for row in range(queries):
        one = torch.tensor([row])
        alone = part(query.rows(one), tuple(key.rows(one) for key in keys), pool, 0)
        keep, mine = together.keep[row], alone.keep[0]
        assert_close(alone.cosine[0, mine], together.cosine[row, keep], rtol=0, atol=1e-14)
        assert torch.equal(alone.key[0, mine], together.key[row, keep])
        if not isinstance(part, OtherViews | FixedViews):
            vectors = pool.vector[together.key[row, keep]]
            assert_close(together.cosine[row, keep], vectors @ query.vector[row], rtol=0, atol=1e-14)


@every_kind
def test_the_query_gets_the_positive_as_its_gradient(part: Positives):
    query, keys, pool = scene(4, 1, 0)
    query.vector.requires_grad_()
    scores = part(query, keys, pool, 0)
    (gradient,) = torch.autograd.grad(scores.cosine[scores.keep].sum(), query.vector)
    weights = torch.nn.functional.one_hot(scores.key, len(pool)) * scores.keep[:, :, None]
    source = keys[0].vector if isinstance(part, OtherViews | FixedViews) else weights.sum(1).double() @ pool.vector
    assert_close(gradient, source, rtol=0, atol=1e-14)


def test_other_views_gives_a_column_per_view_with_gradient_to_it():
    query, keys, pool = scene(3, 2, 0)
    keys[1].vector.requires_grad_()
    scores = OtherViews()(query, keys, pool, 0)
    assert scores.key.tolist() == [[0, 1]] * 3
    for view in range(2):
        assert_close(scores.cosine[:, view], (query.vector * keys[view].vector).sum(1), rtol=0, atol=1e-14)
    scores.cosine[:, 1].sum().backward()
    assert keys[1].vector.grad is not None
    assert_close(keys[1].vector.grad, query.vector, rtol=0, atol=1e-14)


def test_other_views_needs_one():
    query, _, pool = scene(3, 1, 0)
    with pytest.raises(UserError, match=r"Branch\.keys"):
        OtherViews()(query, (), pool, 0)


def test_remembered_looks_up_the_row_of_the_image():
    _, _, pool = scene(3, 1, 0)
    query = Keys(synthetic.vectors(3, 3, 5), torch.tensor([4, 0, 4]))
    scores = Remembered()(query, (), pool, 0)
    assert scores.key.tolist() == [[4], [0], [4]]
    assert_close(scores.cosine[:, 0], (query.vector * pool.vector[[4, 0, 4]]).sum(1), rtol=0, atol=1e-14)


@pytest.mark.parametrize("image", [[0, 99], [0, -1]])
def test_remembered_refuses_an_image_without_a_row(image: list[int]):
    query = Keys(torch.eye(2), torch.tensor(image))
    with pytest.raises(UserError, match=r"Bank\(\)"):
        Remembered()(query, (), Keys(torch.eye(2), torch.arange(2)), 0)


def test_remembered_refuses_a_queue():
    with pytest.raises(UserError, match=r"Bank\(\)"):
        Remembered()(Keys(torch.eye(2), torch.arange(2)), (), Keys(torch.eye(2), torch.tensor([-1, 1])), 0)
