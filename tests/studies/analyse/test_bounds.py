"""Bounds on mutual information against loops, and against the loss that trains."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_critics import random_critic
from references import information as reference
from torch import Tensor
from torch.testing import assert_close

from vantage import draws
from vantage.errors import UserError
from vantage.estimators import InfoNCE
from vantage.negatives import AbsoluteRing, OtherImages, Ring, Sample
from vantage.partition import sum_negatives
from vantage.records import Scores
from vantage.studies.analyse import cnce, i_nce, nce, percentiles


@given(pairs=st.integers(1, 6), negatives=st.integers(1, 20), seed=st.integers(0, 99))
def test_nce_is_equation_1(pairs: int, negatives: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    positive = torch.randn(pairs, generator=generator, dtype=torch.float64)
    negative = torch.randn(pairs, negatives, generator=generator, dtype=torch.float64)
    assert_close(
        nce(positive, negative).tolist(), reference.nce(positive.tolist(), negative.tolist()), rtol=0, atol=1e-12
    )


@given(
    pool=st.integers(2, 40),
    percentile=st.sampled_from(
        [(0.0, 100.0), (10.0, 100.0), (50.0, 100.0), (90.0, 100.0), (0.0, 90.0), (50.0, 90.0), (25.0, 99.0)]
    ),
    seed=st.integers(0, 99),
)
def test_cnce_is_equation_1_over_the_keys_between_two_percentiles(
    pool: int, percentile: tuple[float, float], seed: int
) -> None:
    positive, query, keys = random_critic(3, pool, seed)
    values = (query.vector @ keys.vector.T / 0.7).tolist()
    tails = [reference.between(row, *percentile) for row in values]
    logits = [[row[column] for column in tail] for row, tail in zip(values, tails, strict=True)]
    if not all(logits):  # a ring of nothing keeps a rank all the same
        return
    estimate = cnce(positive, query, keys, percentiles(*percentile), temperature=0.7)
    assert_close(estimate.tolist(), reference.nce(positive.tolist(), logits), rtol=0, atol=1e-10)


@pytest.mark.parametrize("lower", [0.0, 30.0])
def test_cnce_draws_as_training_does(lower: float) -> None:
    positive, query, keys = random_critic(4, 30)
    values = (query.vector @ keys.vector.T).tolist()
    tails = []
    for row, seed in zip(values, query.seeds, strict=True):
        tail = reference.between(row, lower, 100)
        tails.append([row[tail[i]] for i in draws.integers(seed[None], 12, len(tail))[0]])
    estimate = cnce(positive, query, keys, (*percentiles(lower), Sample(12)))
    assert_close(estimate.tolist(), reference.nce(positive.tolist(), tails), rtol=0, atol=1e-12)


@pytest.mark.parametrize("rules", [(), (Ring(),), (AbsoluteRing(),), (Ring(), Sample(7)), (OtherImages(), Ring())])
def test_cnce_is_i_nce_of_the_loss_that_trains(rules: tuple) -> None:
    positive, query, keys = random_critic(5, 200)
    negatives = sum_negatives(query, keys, rules, 0.5, 0)
    column = torch.zeros(5, 1, dtype=torch.long)
    scores = Scores(positive[:, None] * 0.5, column, torch.ones_like(column, dtype=torch.bool))
    losses = InfoNCE(0.5)(scores, negatives, 0)
    count = 7 if Sample(7) in rules else {(): 200, (Ring(),): 18, (AbsoluteRing(),): 18}.get(rules, 18)
    assert negatives.count.tolist() == [count] * 5
    assert_close(cnce(positive, query, keys, rules, 0.5), i_nce(losses, count))


def test_cnce_in_tiles_is_cnce_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    positive, query, keys = random_critic(11, 50)
    rules = (*percentiles(40.0), Sample(9))
    whole = cnce(positive, query, keys, rules)
    monkeypatch.setattr("vantage.measures.information.BUDGET", 50 * 64 * 3)
    assert_close(cnce(positive, query, keys, rules), whole, rtol=0, atol=1e-14)


def test_a_query_without_negatives_has_no_information() -> None:
    positive, query, keys = random_critic(1, 1)
    assert cnce(positive, query, keys, (OtherImages(),)).tolist() == [0.0]


def test_gradients_are_those_of_the_formula() -> None:
    positive, query, keys = random_critic(3, 10, width=2)
    negative = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(nce, (positive.requires_grad_(), negative))
    for rules in (percentiles(40.0), (*percentiles(40.0), Sample(6)), (Sample(6),)):

        def critic(own: Tensor, left: Tensor, right: Tensor, rules: tuple = rules) -> Tensor:
            return cnce(own, replace(query, vector=left), replace(keys, vector=right), rules)

        inputs = (positive, query.vector.clone().requires_grad_(), keys.vector.clone().requires_grad_())
        assert torch.autograd.gradcheck(critic, inputs)


def test_i_nce_of_numbers_and_tensors() -> None:
    assert i_nce(0.25, 99) == pytest.approx(math.log(100) - 0.25)
    assert_close(i_nce(torch.tensor([0.0, 1.0]), 3), torch.tensor([math.log(4), math.log(4) - 1]))
    with pytest.raises(UserError, match="negatives is -1"):
        i_nce(1.0, -1)


@pytest.mark.parametrize("percentile", [(50.0, 50.0), (-1.0, 100.0), (0.0, 101.0), (90.0, 10.0)])
def test_percentiles_that_hold_nothing_are_refused(percentile: tuple[float, float]) -> None:
    with pytest.raises(UserError, match="0 ≤ lower < upper ≤ 100"):
        percentiles(*percentile)
