"""Near neighbors as positives: what is chosen, and the loss against a loop over the whole bank."""

from dataclasses import replace

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from references import losses as reference
from torch import Tensor
from torch.testing import assert_close

from vantage.branch import Branch
from vantage.composition.fitting import stretch_all
from vantage.errors import UserError
from vantage.estimators import Estimator, InfoNCE, MeanNeighbors, SoftNeighbors
from vantage.memory import Bank, Queue
from vantage.negatives import AbsoluteRing, Ring
from vantage.partition import negatives_of
from vantage.positives import Neighbors, OtherViews, Remembered
from vantage.records import Keys
from vantage.schedules import BetweenEpochs, Constant, Linear

RING = Ring(Constant(0.6), Constant(0.4))
each_estimator = pytest.mark.parametrize("estimator", [SoftNeighbors(0.2), MeanNeighbors(0.2)], ids=str)


def branch(estimator: Estimator, ring: Ring | AbsoluteRing = RING, bank: bool = True) -> Branch:
    if bank:
        return Branch(Bank(), Neighbors(Remembered(), ring), (ring,), estimator, keys=(), pool=(0,))
    return Branch(Queue(20), Neighbors(OtherViews(), ring), (ring,), estimator)


def by_loop(query: Tensor, own: Tensor, pool: Tensor, inner: int, outer: int, estimator: Estimator) -> Tensor:
    """Rank every row, cut twice, join what is inside with the own positive."""
    losses = []
    for vector, mine in zip(query, own, strict=True):
        cosine = [reference.dot(vector, row) for row in pool]
        order = sorted(range(len(pool)), key=lambda j: -float(cosine[j].detach()))  # noqa: B023
        near = [cosine[j] for j in order[:inner]]
        ring = [cosine[j] for j in order[inner:outer]]
        join = reference.together if isinstance(estimator, SoftNeighbors) else reference.on_average
        losses.append(reference.neighbors(reference.dot(vector, mine), near, ring, estimator.temperature, join))
    return torch.stack(losses).mean()


@each_estimator
@pytest.mark.parametrize("bank", [True, False])
@pytest.mark.parametrize("ring", [RING, AbsoluteRing(Constant(0.6), Constant(0.2)), Ring(Constant(1.0), Constant(0.9))])
def test_the_loss_is_its_loop(estimator: Estimator, bank: bool, ring: Ring | AbsoluteRing):
    query, key, pool = synthetic.keys(5, 4, 0), synthetic.keys(5, 4, 1), synthetic.keys(20, 4, 2)
    query.vector.requires_grad_()
    actual = branch(estimator, ring, bank).contrast(query, (key,) if not bank else (), pool, 3).loss
    inner, outer = (int(edge) for edge in ring.ranks(torch.tensor([20]), 3))
    own = pool.vector[:5] if bank else key.vector
    expected = by_loop(query.vector, own, pool.vector, inner, outer, estimator)
    assert_close(actual, expected, rtol=0, atol=1e-10)
    ours, theirs = (torch.autograd.grad(loss, query.vector)[0] for loss in (actual, expected))
    assert_close(ours, theirs, rtol=0, atol=1e-10)


@given(
    rows=st.integers(5, 40),
    keep=st.floats(0.0, 1.0),
    drop=st.floats(0.0, 1.0, exclude_max=True),
    seed=st.integers(0, 50),
)
def test_neighbors_and_negatives_are_the_ball_and_share_no_row(rows: int, keep: float, drop: float, seed: int):
    ring = Ring(Constant(keep), Constant(drop))
    query, pool = synthetic.keys(4, 3, seed), synthetic.keys(rows, 3, seed + 1)
    positive = Neighbors(Remembered(), ring)(query, (), pool, 0)
    negative = negatives_of(query, pool, (ring,), 0)
    inner, outer = (int(edge) for edge in ring.ranks(torch.tensor([rows]), 0))
    for row in range(4):
        near = positive.key[row, 1:].tolist()
        far = negative.key[row][negative.keep[row]].tolist()
        order = (pool.vector @ query.vector[row]).argsort(descending=True).tolist()
        assert near == order[:inner] and sorted(far) == sorted(order[inner:outer])
        assert positive.key[row, 0] == row, "the own positive leads"


@each_estimator
def test_without_an_inner_cut_it_is_info_nce(estimator: Estimator):
    ring = Ring(Constant(0.5), Constant(0.0))
    query, pool = synthetic.keys(5, 4, 0), synthetic.keys(20, 4, 2)
    loss = branch(estimator, ring).contrast(query, (), pool, 0).loss
    plain = replace(branch(InfoNCE(0.2), ring), positives=Remembered())
    assert torch.equal(loss, plain.contrast(query, (), pool, 0).loss)


def test_neighbors_above_the_line_only_may_make_a_loss_negative():
    near = synthetic.table(torch.tensor([[0.2, 0.9, 0.9]], dtype=torch.float64))
    rest = synthetic.negatives(torch.tensor([-1.0], dtype=torch.float64))
    assert SoftNeighbors(0.1)(near, rest, 0) < 0 and MeanNeighbors(0.1)(near, rest, 0) < 0
    assert InfoNCE(0.1)(near, rest, 0) > 0


def test_how_many_follows_the_step_and_the_length_of_the_run():
    ring = Ring(Linear(1.0, 0.5, 10), Constant(0.4))
    query, pool = synthetic.keys(5, 4, 0), synthetic.keys(20, 4, 2)
    counts = [Neighbors(Remembered(), ring)(query, (), pool, step).key.shape[1] - 1 for step in (0, 5, 10)]
    assert counts == [8, 6, 4]
    course = BetweenEpochs(Linear(1.0, 0.1, 100))
    longer = stretch_all(Neighbors(Remembered(), Ring(course)), 2.0, 1.0)
    assert longer.ring == stretch_all(Ring(course), 2.0, 1.0) != Ring(course)


def test_the_own_positive_is_checked():
    query, pool = synthetic.keys(3, 4, 0), synthetic.keys(9, 4, 1)
    with pytest.raises(UserError, match=r"Bank\(\)"):
        Neighbors()(query, (), Keys(pool.vector, pool.image.flip(0)), 0)
