"""Local aggregation's estimator: its loop and its identities. Its contract is in `estimators/test_estimators.py`."""

import math

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from references import losses as reference
from torch import Tensor
from torch.testing import assert_close

from vantage.estimators import InfoNCE, LocalAggregation, MeanAggregation, PooledNCE
from vantage.records import Negatives


def cosines(rows: int, columns: int, seed: int) -> Tensor:
    return torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 - 1


def negatives_of(b: Tensor, temperature: float, count: int | None = None) -> Negatives:
    return synthetic.negatives(torch.logsumexp(b / temperature, 1), count or b.shape[1])


@pytest.mark.parametrize("temperature", [0.07, 0.2, 1.0])
@given(mates=st.integers(1, 4), others=st.integers(1, 6), seed=st.integers(0, 30))
def test_it_equals_its_loop(temperature: float, mates: int, others: int, seed: int):
    a, b = cosines(3, mates, seed).requires_grad_(), cosines(3, others, seed + 1).requires_grad_()
    actual = LocalAggregation(temperature)(synthetic.table(a), negatives_of(b, temperature), 0)
    expected = torch.stack(reference.local_aggregation([list(row) for row in a], [list(row) for row in b], temperature))
    assert_close(actual, expected, rtol=0, atol=1e-10)
    for ours, theirs in zip(
        torch.autograd.grad(actual.sum(), (a, b)), torch.autograd.grad(expected.sum(), (a, b)), strict=True
    ):
        assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_15_one_label_for_all_costs_nothing():
    """B holds mates only, so no negative is left."""
    a = cosines(2, 5, 0).requires_grad_()
    actual = LocalAggregation()(synthetic.table(a), synthetic.negatives(torch.full((2,), -torch.inf).double()), 0)
    assert_close(actual, torch.full_like(actual, -math.log(1 + 1e-7)), rtol=0, atol=1e-15)
    assert (torch.autograd.grad(actual.sum(), a)[0].abs() < 1e-15).all()


def test_15_a_label_for_each_image_gives_the_ball():
    """The own row is the only mate, and the loss that of InfoNCE against the other near rows."""
    a, b = cosines(6, 1, 0), cosines(6, 9, 1)
    rest = negatives_of(b, 0.5)
    actual, ball = (part(synthetic.table(a), rest, 0) for part in (LocalAggregation(0.5), InfoNCE(0.5)))
    assert_close(actual, ball, rtol=0, atol=2e-5)
    assert (actual < ball).all(), "by what the release adds to the probability"


def test_15_mates_of_vanishing_probability_cost_16_118_without_gradient():
    a, b = torch.full((1, 2), -1.0, dtype=torch.float64).requires_grad_(), torch.ones(1, 3, dtype=torch.float64)
    actual = LocalAggregation(0.02)(synthetic.table(a), negatives_of(b, 0.02), 0)
    assert abs(float(actual.detach()) - 16.118) < 5e-4
    assert (torch.autograd.grad(actual.sum(), a)[0].abs() < 1e-30).all()


@given(seed=st.integers(0, 50))
def test_15_means_in_place_of_sums_have_the_same_gradient(seed: int):
    """CNCE Eq. 5 over the same sets: the value differs by log(|B| / |C|)."""
    a, b = cosines(3, 2, seed).requires_grad_(), cosines(3, 5, seed + 1).requires_grad_()
    actual = LocalAggregation(0.5)(synthetic.table(a), negatives_of(b, 0.5), 0)
    near = negatives_of(torch.cat([a, b], 1), 0.5)
    of_means = MeanAggregation(0.5)(synthetic.table(a), near, 0)
    assert_close(actual - of_means, torch.full_like(actual, math.log(7 / 2)), rtol=0, atol=1e-4)
    for ours, theirs in zip(
        torch.autograd.grad(actual.sum(), (a, b)), torch.autograd.grad(of_means.sum(), (a, b)), strict=True
    ):
        assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("temperature", [0.07, 1.0])
@given(mates=st.integers(1, 4), others=st.integers(1, 6), seed=st.integers(0, 30))
def test_means_equal_their_loops(temperature: float, mates: int, others: int, seed: int):
    a, b = cosines(3, mates, seed).requires_grad_(), cosines(3, others, seed + 1).requires_grad_()
    rest, rows = negatives_of(b, temperature, 11), ([list(row) for row in a], [list(row) for row in b])
    cases = (
        (MeanAggregation(temperature), reference.mean_aggregation(*rows, temperature, 11)),
        (PooledNCE(temperature), reference.pooled_nce(*rows, temperature)),
    )
    for part, loop in cases:
        actual, expected = part(synthetic.table(a), rest, 0), torch.stack(loop)
        assert_close(actual, expected, rtol=0, atol=1e-10)
        ours = torch.autograd.grad(actual.sum(), (a, b), retain_graph=True)
        theirs = torch.autograd.grad(expected.sum(), (a, b), retain_graph=True)
        for one, other in zip(ours, theirs, strict=True):
            assert_close(one, other, rtol=0, atol=1e-10)
        assert torch.autograd.gradcheck(
            lambda x, y, p=part: p(synthetic.table(x), negatives_of(y, p.temperature), 0), (a, b)
        )


@given(seed=st.integers(0, 50))
def test_one_mate_makes_the_pooled_positive_info_nce(seed: int):
    a, b = cosines(3, 1, seed), cosines(3, 5, seed + 1)
    actual, plain = (part(synthetic.table(a), negatives_of(b, 0.2), 0) for part in (PooledNCE(0.2), InfoNCE(0.2)))
    assert_close(actual, plain, rtol=0, atol=1e-12)
