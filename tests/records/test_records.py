"""Keys and Scores: what parts hand to each other."""

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st

from vantage.errors import UserError
from vantage.records import Keys, score


def test_rows_take_every_field_along():
    keys = synthetic.keys(5, 3, seed=0)
    keys = Keys(keys.vector, keys.image, torch.arange(10).reshape(5, 2), keys.seed)
    for index in (slice(1, 4), torch.tensor([1, 2, 3]), torch.tensor([False, True, True, True, False])):
        part = keys.rows(index)
        assert len(part) == 3
        assert torch.equal(part.vector, keys.vector[1:4])
        assert part.image.tolist() == [1, 2, 3]
        assert part.clusters.tolist() == [[2, 3], [4, 5], [6, 7]]
        assert torch.equal(part.seeds, keys.seeds[1:4])


def test_messages_about_missing_fields_name_the_remedy():
    keys = Keys(torch.ones(2, 3), torch.arange(2))
    with pytest.raises(UserError, match="memory that keeps them"):
        _ = keys.clusters
    with pytest.raises(UserError, match="set Keys.seed"):
        _ = keys.seeds


def test_rows_must_agree():
    with pytest.raises(Exception, match="image"):
        Keys(torch.ones(3, 2), torch.arange(4))


@given(queries=st.integers(1, 5), pool=st.integers(1, 7), width=st.integers(1, 4))
def test_score_is_every_inner_product(queries: int, pool: int, width: int):
    query, bank = synthetic.keys(queries, width, 1), synthetic.keys(pool, width, 2)
    scores = score(query, bank)
    assert scores.keeps_all
    for i in range(queries):
        for j in range(pool):
            assert scores.key[i, j] == j
            torch.testing.assert_close(scores.cosine[i, j], query.vector[i] @ bank.vector[j], rtol=0, atol=1e-14)


@given(queries=st.integers(1, 4), pool=st.integers(1, 6), seed=st.integers(0, 99))
def test_of_follows_narrowed_columns(queries: int, pool: int, seed: int):
    scores = score(synthetic.keys(queries, 2, seed), synthetic.keys(pool, 2, seed + 1))
    field, labels = torch.arange(pool) * 10, torch.stack([torch.arange(pool), -torch.arange(pool)], 1)
    assert torch.equal(scores.of(field), (torch.arange(pool) * 10).expand(queries, pool))
    column = torch.randint(pool, (queries, 3), generator=torch.Generator().manual_seed(seed))
    subset = scores.narrow(column)
    assert torch.equal(subset.of(field), column * 10)
    assert torch.equal(subset.of(labels), torch.stack([column, -column], 2))
    assert torch.equal(subset.cosine, scores.cosine.gather(1, column))


def test_dropped_pairs_stay_dropped():
    scores = score(synthetic.keys(2, 3, 0), synthetic.keys(4, 3, 1))
    first = scores.only(torch.tensor([[True, False, True, False]] * 2))
    assert not first.keeps_all
    second = first.only(torch.tensor([[True, True, False, False]] * 2))
    assert second.keep.tolist() == [[True, False, False, False]] * 2
    assert second.narrow(torch.tensor([[1, 0], [0, 0]])).keep.tolist() == [[False, True], [True, True]]


def test_logits_are_minus_infinity_where_dropped():
    scores = synthetic.table(torch.tensor([[0.5, -0.25]]), torch.tensor([[True, False]]))
    assert scores.logits(0.5).tolist() == [[1.0, -torch.inf]]
