"""The way of rules that keep a band to the log-partition: it equals the table, and the rules choose it."""

import pytest
import synthetic
import torch
from band_rules import BANDS, gradient, pair
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from vantage.negatives import Ball, BandRule, Distinct, Hardest, OtherImages, Ring, Rule, Sample
from vantage.partition import negatives, negatives_of, sum_band, sum_negatives, sum_table
from vantage.records import Keys
from vantage.schedules import Constant


@given(queries=st.integers(1, 6), pool=st.integers(1, 40), images=st.integers(1, 9), rows=st.integers(1, 7))
def test_the_band_way_equals_the_table(queries: int, pool: int, images: int, rows: int):
    query, keys = pair(queries, pool, images, pool)
    for last in BANDS:
        for before in ((), (OtherImages(),)):
            expected = sum_table(query, keys, (*before, last), 0.1, 0).log_sum
            log_sum = sum_band(query, keys, before, last, 0.1, 0, rows).log_sum
            assert_close(log_sum, expected, rtol=0, atol=1e-12)
            assert_close(gradient(log_sum, query), gradient(expected, query), rtol=0, atol=1e-11)


def test_the_way_is_chosen_by_the_rules(monkeypatch: pytest.MonkeyPatch):
    calls: list[str] = []
    for name in ("sum_band", "sum_band_draw", "sum_table", "sum_streaming"):
        function = getattr(negatives, name)
        monkeypatch.setattr(
            negatives, name, lambda *arguments, name=name, function=function: calls.append(name) or function(*arguments)
        )
    query, keys = pair(3, 30, 9, 0)
    cases: list[tuple[tuple[Rule, ...], str]] = [
        ((Ring(),), "sum_band"),
        ((OtherImages(), Ball()), "sum_band"),
        ((Ring(), Sample(3)), "sum_band_draw"),
        ((OtherImages(), Hardest(), Distinct(3)), "sum_band_draw"),
        ((Ring(), Sample(3), OtherImages()), "sum_table"),
        ((Ring(), OtherImages()), "sum_table"),
        ((Hardest(), Ring()), "sum_table"),
        ((OtherImages(),), "sum_streaming"),
    ]
    for rules, _ in cases:
        sum_negatives(query, keys, rules, 0.1, 0)
    learning = Keys(keys.vector.clone().requires_grad_(), keys.image)
    sum_negatives(query, learning, (Ring(),), 0.1, 0)
    assert calls == [*(function for _, function in cases), "sum_table"], "keys that learn take the table"


def test_the_band_of_keys_that_learn_gives_them_a_gradient():
    query, keys = pair(3, 30, 9, 0)
    learning = Keys(keys.vector.clone().requires_grad_(), keys.image)
    log_sum = sum_negatives(query, learning, (Ring(Constant(0.5)),), 0.1, 0).log_sum
    scores = negatives_of(query, learning, (Ring(Constant(0.5)),), 0)
    expected = torch.logsumexp(scores.logits(0.1), 1)
    ours, theirs = (torch.autograd.grad(value.sum(), learning.vector)[0] for value in (log_sum, expected))
    assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_a_query_without_pairs_gives_minus_infinity_and_no_gradient():
    query = Keys(synthetic.vectors(3, 4, 0).requires_grad_(), torch.tensor([7, 7, 1]))
    keys = Keys(synthetic.vectors(5, 4, 1), torch.full((5,), 7))
    for dtype in (torch.float32, torch.float64):
        queries = Keys(query.vector.detach().to(dtype).requires_grad_(), query.image)
        log_sum = sum_negatives(
            queries, Keys(keys.vector.to(dtype), keys.image), (OtherImages(), Ring()), 0.1, 0
        ).log_sum
        assert torch.isneginf(log_sum[:2]).all() and torch.isfinite(log_sum[2])
        torch.nn.functional.softplus(log_sum).sum().backward()
        to_query = queries.vector.grad
        assert to_query is not None and (to_query[:2] == 0).all() and to_query[2].abs().sum() > 0


def test_the_precision_is_float32_also_under_autocast_and_for_half_vectors():
    query, keys = synthetic.keys(4, 16, 0, dtype=torch.float32), synthetic.keys(200, 16, 1, dtype=torch.float32)
    query.vector.requires_grad_()
    plain = sum_negatives(query, keys, (Ring(),), 0.1, 0).log_sum
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under_autocast = sum_negatives(query, keys, (Ring(),), 0.1, 0).log_sum
        assert torch.equal(gradient(under_autocast, query), gradient(plain, query))
    assert under_autocast.dtype == torch.float32 and torch.equal(under_autocast, plain)
    half = Keys(query.vector.detach().bfloat16().requires_grad_(), query.image)
    log_sum = sum_negatives(half, Keys(keys.vector.bfloat16(), keys.image), (Ring(),), 0.1, 0).log_sum
    exact = sum_negatives(
        Keys(half.vector.detach().float(), half.image),
        Keys(keys.vector.bfloat16().float(), keys.image),
        (Ring(),),
        0.1,
        0,
    ).log_sum
    assert log_sum.dtype == torch.float32 and torch.equal(log_sum.detach(), exact)


@pytest.mark.gpu
@pytest.mark.parametrize("last", BANDS, ids=str)
@pytest.mark.parametrize("before", [(), (OtherImages(),)])
def test_gpu_equals_cpu(last: BandRule, before: tuple[Rule, ...]):
    query, keys = pair(9, 300, 20, seed=2)
    gpu_query = Keys(query.vector.detach().cuda().requires_grad_(), query.image.cuda())
    pool = Keys(keys.vector.cuda(), keys.image.cuda())
    ours, theirs = (sum_band(q, k, before, last, 0.1, 0, 4).log_sum for q, k in ((query, keys), (gpu_query, pool)))
    assert_close(ours, theirs.cpu(), rtol=0, atol=1e-10)
    assert_close(gradient(ours, query), gradient(theirs.cpu(), gpu_query).cpu(), rtol=0, atol=1e-10)
