"""Rules that draw: uniformly over what remains, anew in each step, and whatever the order of keys."""

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from score_scenes import pairs, scene
from torch import Tensor

from vantage.errors import UserError
from vantage.negatives import Distinct, Draw, Sample
from vantage.partition import negatives_of
from vantage.records import Keys, score


def draw_columns(rule: Draw, keep: Tensor, count: int = 4000) -> Tensor:
    """How often each column is drawn by many queries."""
    query = Keys(torch.zeros(count, 1), torch.arange(count), seed=synthetic.query_seeds(9, 1, torch.arange(count)))
    keys = Keys(torch.zeros(len(keep), 1), torch.arange(len(keep)))
    before = score(query, keys)
    after = rule(before if keep.all() else before.only(keep.expand(count, -1)), query, keys, 0)
    assert after.keep.all()
    return after.key


@pytest.mark.parametrize("kind", [Sample, Distinct])
@pytest.mark.parametrize("some", [True, False])
def test_sample_is_uniform_over_the_remaining_keys(kind: type[Draw], some: bool):
    keep = torch.tensor([True, not some, True, True, not some, True, True])
    columns = draw_columns(kind(3), keep)
    times = columns.flatten().bincount(minlength=7)
    assert (times[~keep] == 0).all()
    assert chisquare(times[keep].numpy()).pvalue > 1e-3
    repeats = (columns[:, :, None] == columns[:, None, :]).sum((1, 2)) > 3
    if kind is Sample:
        key_count = int(keep.sum())
        expected = 1 - (1 - 1 / key_count) * (1 - 2 / key_count)
        assert abs(float(repeats.double().mean()) - expected) < 0.04
    else:
        assert not repeats.any()


@pytest.mark.parametrize("kind", [Sample, Distinct])
def test_sample_does_not_care_for_key_order_in_law(kind: type[Draw]):
    """Which key a column is has no influence: each kept key is as likely wherever it stands."""
    keep = torch.tensor([True, True, False, True, True])
    times = draw_columns(kind(2), keep).flatten().bincount(minlength=5)
    reversed_times = draw_columns(kind(2, salt=1), keep.flip(0)).flatten().bincount(minlength=5).flip(0)
    both = torch.stack([times[keep], reversed_times[keep]]).double()
    expected = both.sum(0) / 2
    assert float(((both - expected) ** 2 / expected).sum()) < 16.3  # chi-square of 3 degrees of freedom, p = .001


def test_distinct_sample_takes_all_where_there_are_too_few():
    before, query, keys = scene(4, 6, 6, seed=0)
    keep = torch.tensor([[True] * 2 + [False] * 4] * 4)
    after = Distinct(4)(before.only(keep), query, keys, 0)
    assert [sorted(pairs(after, row)) for row in range(4)] == [[0, 1]] * 4
    assert Distinct(9)(before, query, keys, 0).key.sort(1).values.tolist() == [list(range(6))] * 4


def test_sample_of_nothing_is_nothing():
    before, query, keys = scene(2, 5, 5, seed=0)
    empty = before.only(torch.zeros(2, 5, dtype=torch.bool))
    for kind in (Sample, Distinct):
        assert not kind(3)(empty, query, keys, 0).keep.any()


def test_the_step_and_the_salt_change_the_draw():
    keys = synthetic.keys(1000, 2, 0)
    query = [
        Keys(keys.vector[:4], keys.image[:4], seed=synthetic.query_seeds(0, step, torch.arange(4))) for step in (0, 1)
    ]
    one = [negatives_of(q, keys, (Sample(20),), step).key for step, q in enumerate(query)]
    other = negatives_of(query[0], keys, (Sample(20, salt=1),), 0).key
    again = negatives_of(query[0], keys, (Sample(20),), 0).key
    assert torch.equal(one[0], again)
    assert not torch.equal(one[0], one[1]) and not torch.equal(one[0], other)


def test_sample_refuses_to_draw_nothing():
    with pytest.raises(UserError, match="at least 1"):
        Sample(0)
    with pytest.raises(UserError, match=r"Distinct\(count=0\)"):
        Distinct(0)
    with pytest.raises(UserError, match="not a share"):
        Sample(5, share=0.0)


@given(images=st.integers(2, 2_000_000), count=st.integers(1, 70_000))
def test_a_fitted_sample_never_grows(images: int, count: int):
    rule = Distinct(count, salt=3).fit_to(images, 256)
    assert 1 <= rule.count <= min(count, max(images, 1))
    assert isinstance(rule, Distinct) and rule.salt == 3
    assert rule.count == count or rule.count >= min(256, images)
    assert Sample(16_384, share=0.0128).fit_to(50_000, 256).count == 640
