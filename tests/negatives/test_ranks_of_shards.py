"""Ranks and draws among the columns of all processes, here on one that has them all; `memory/test_sharded_banks.py` has
several."""

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st

from vantage import draws
from vantage.errors import UserError
from vantage.negatives import Ball, Distinct, Draw, Ring, Sample
from vantage.negatives.ranks import within
from vantage.negatives.ranks_of_shards import within_all
from vantage.records import Keys, Scores, score
from vantage.schedules import Constant


@given(
    value=st.lists(st.sampled_from([-torch.inf, -1.0, -0.3, -0.0, 0.0, 1e-30, 0.2, 0.7, 1.0]), min_size=1, max_size=9),
    edges=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    double=st.booleans(),
)
def test_ranks_are_those_of_one_process(value: list[float], edges: tuple[int, int], double: bool):
    """Equal values rank by column, minus zero is zero."""
    table = torch.tensor([value, value[::-1]], dtype=torch.float64 if double else torch.float32)
    outer = torch.minimum((table > -torch.inf).sum(1), torch.tensor(max(edges)))
    inner = torch.minimum(outer, torch.tensor(min(edges)))
    assert torch.equal(within_all(table, inner, outer), within(table, inner, outer).inside)


@pytest.mark.parametrize("draw", [Sample(5), Distinct(5), Distinct(50), Sample(3, salt=2)])
@pytest.mark.parametrize("band", [Ring(Constant(0.6), Constant(0.4)), Ball()])
def test_a_draw_is_that_of_one_process(draw: Draw, band: Ring | Ball):
    seed = draws.query_seeds(0, 3, torch.arange(4))
    query, pool = Keys(synthetic.vectors(4, 6, 0), torch.arange(4), seed=seed), synthetic.keys(40, 6, 1)
    whole = score(query, pool)
    expected = draw(band(whole, query, pool, 0), query, pool, 0)
    mine = draw.on_shard(band.on_shard(whole, query, 0, 0), query, 0, 0)
    assert columns_of(mine) == columns_of(expected) != []


def columns_of(scores: Scores) -> list[list[int]]:
    """The keys that each query draws."""
    return [sorted(key[keep].tolist()) for key, keep in zip(scores.key, scores.keep, strict=True)]


def test_a_draw_of_another_kind_is_refused():
    class Own(Distinct):
        on_shard = Draw.on_shard

    with pytest.raises(UserError, match="Own cannot draw from a sharded bank: take Sample, or sharded=False"):
        scores = score(synthetic.keys(2, 3, 0), synthetic.keys(5, 3, 1))
        Own(3).on_shard(scores, synthetic.keys(2, 3, 0), 0, 0)
