"""How many negatives each query has: right in every way to the sum, and counted only when somebody asks.

m: keys of the pool
"""

from dataclasses import dataclass, replace

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st

from vantage.negatives import (
    AbsoluteRing,
    Ball,
    Count,
    Distinct,
    Easiest,
    Hardest,
    OtherClusters,
    OtherImages,
    OwnCluster,
    PairRule,
    Ring,
    Rule,
    Sample,
    Subset,
)
from vantage.partition import negatives_of, sum_negatives, sum_table
from vantage.records import Keys, Negatives, Scores
from vantage.schedules import Constant

RULES: tuple[tuple[Rule, ...], ...] = (
    (),
    (OtherImages(),),
    (OtherImages(), OtherClusters()),
    (OwnCluster(), OtherImages()),
    (Ring(Constant(0.5), Constant(0.5)),),
    (OtherClusters(), AbsoluteRing(Constant(0.6), Constant(0.1))),
    (OwnCluster(), Easiest(Count(4))),
    (OtherImages(), Hardest(Count(9)), Sample(5)),
    (OwnCluster(), Ball(Constant(0.5)), Distinct(5)),
    (Subset(7),),
    (Subset(7), OtherImages(), Hardest(Count(3))),
    (Sample(1),),
    (Sample(4), OtherImages()),
    (Hardest(Count(9)), OtherImages()),
)


@pytest.mark.parametrize("rules", RULES, ids=str)
@given(pool=st.integers(1, 50), images=st.integers(1, 9), seed=st.integers(0, 9), learn=st.booleans())
def test_the_count_is_that_of_a_loop_over_the_table(rules, pool: int, images: int, seed: int, learn: bool):
    query, keys = synthetic.keys(5, 4, seed, images), synthetic.keys(pool, 4, seed + 1, images)
    query = replace(query, vector=query.vector.requires_grad_(), cluster=(query.image % 3)[:, None])
    keys = replace(keys, vector=keys.vector.requires_grad_(learn), cluster=(keys.image % 3)[:, None])
    scores = negatives_of(query, keys, rules, 0)
    expected = [sum(1 for column in range(scores.keep.shape[1]) if scores.keep[row, column]) for row in range(5)]
    for negatives in (sum_negatives(query, keys, rules, 0.1, 0), sum_table(query, keys, rules, 0.1, 0, budget=3000)):
        assert negatives.count.dtype == torch.int64 and negatives.count.tolist() == expected
        assert torch.isneginf(negatives.log_sum.detach()).tolist() == [many == 0 for many in expected]
        negatives.log_sum[torch.isfinite(negatives.log_sum)].sum().backward()
        assert negatives.count.tolist() == expected, "a backward pass that makes the tiles again counts nothing twice"
    assert scores.count.tolist() == expected


def test_pair_rules_run_again_only_for_the_count():
    calls: list[int] = []

    @dataclass(frozen=True)
    class Watched(PairRule):
        """Notes each call."""

        def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
            """The pairs of other images."""
            calls.append(scores.cosine.shape[1])
            return OtherImages()(scores, query, pool, step)

    query, keys = synthetic.keys(3, 4, 0), synthetic.keys(5000, 4, 1)
    negatives = sum_negatives(query, keys, (Watched(),), 0.1, 0)
    assert calls == [2048, 2048, 904]
    assert negatives.count.tolist() == negatives.count.tolist() == [4999] * 3
    assert calls == [2048, 2048, 904] * 2, "counted once"


def test_a_known_count_is_used():
    assert Negatives(torch.zeros(2), torch.tensor([3, 4])).count.tolist() == [3, 4]
