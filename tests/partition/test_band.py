"""Rules that keep a band of ranks: what they keep, and the identities of the papers."""

from dataclasses import replace

import pytest
import synthetic
import torch
from band_rules import gradient, pair
from hypothesis import given
from hypothesis import strategies as st
from references import losses as reference
from references import ranks as ranking
from torch import Tensor
from torch.testing import assert_close

from vantage.errors import UserError
from vantage.estimators import InfoNCE
from vantage.negatives import AbsoluteRing, Ball, BandRule, Count, Easiest, Hardest, Ring, Rule, Sample, Share
from vantage.partition import negatives_of, sum_negatives
from vantage.records import Keys, Scores, score
from vantage.schedules import BetweenEpochs, Constant, Linear

SHARES = st.integers(0, 100).map(lambda hundredths: f"{hundredths / 100:.2f}")


def columns_of(scores: Scores) -> list[list[int]]:
    return [sorted(scores.key[row][scores.keep[row]].tolist()) for row in range(len(scores.key))]


@given(pool=st.integers(1, 60), keep=SHARES, drop=SHARES, relative=st.booleans(), levels=st.sampled_from([3, 1000]))
def test_rings_equal_a_sorted_list_also_where_cosines_are_equal(pool, keep, drop, relative, levels):
    cosine = torch.randint(0, levels, (3, pool), generator=torch.Generator().manual_seed(pool)) / levels
    kind = Ring if relative else AbsoluteRing
    rule = kind(Constant(float(keep)), Constant(float(drop)))
    query, keys = synthetic.keys(3, 2, 0), synthetic.keys(pool, 2, 1)
    if float(drop) >= (1.0 if relative else float(keep)) and float(drop) > 0:
        with pytest.raises(UserError, match="nothing is left: make drop smaller"):
            rule(synthetic.table(cosine), query, keys, 0)
        return
    expected = [ranking.ring(row.tolist(), keep, drop, relative) for row in cosine]
    assert columns_of(rule(synthetic.table(cosine), query, keys, 0)) == expected
    if float(drop) == 0:
        assert columns_of(Ball(Constant(float(keep)))(synthetic.table(cosine), query, keys, 0)) == expected


@given(pool=st.integers(1, 40), seed=st.integers(0, 99))
def test_ranks_are_over_the_remaining_pairs(pool: int, seed: int):
    """Each query ranks its own kept columns; a query with none keeps none; at least one stays of any."""
    generator = torch.Generator().manual_seed(seed)
    cosine, keep = torch.rand(4, pool, generator=generator), torch.rand(4, pool, generator=generator) < 0.5
    keep[0] = False
    query, keys = synthetic.keys(4, 2, 0), synthetic.keys(pool, 2, 1)
    columns = columns_of(Ring(Constant(0.4), Constant(0.5))(synthetic.table(cosine, keep), query, keys, 0))
    for row in range(4):
        candidates = keep[row].nonzero()[:, 0].tolist()
        ring = ranking.ring(cosine[row, keep[row]].tolist(), "0.4", "0.5")
        assert columns[row] == [candidates[rank] for rank in ring]
        assert bool(columns[row]) == bool(candidates)


@pytest.mark.parametrize(
    ("keys", "rule", "ranks"),
    [
        (50_000, Ring(), (500, 5_000)),
        (65_536, Ring(), (655, 6_553)),
        (50_000, AbsoluteRing(), (500, 5_000)),
        (50_000, Ring(drop=Constant(0.0)), (0, 5_000)),
        (50_000, Ball(), (0, 5_000)),
        (100, Ball(Constant(0.29)), (0, 29)),
        (50_000, Ring(Constant(1.0)), (5_000, 50_000)),
        (100, Hardest(Count(7)), (0, 7)),
        (5, Hardest(Count(7)), (0, 5)),
        (100, Easiest(Count(7)), (93, 100)),
        (100, Easiest(), (90, 100)),
        (100, Hardest(), (0, 10)),
        (5, Ring(), (0, 1)),
        (0, Ring(), (0, 0)),
    ],
)
def test_13_rank_counts(keys: int, rule: BandRule, ranks: tuple[int, int]):
    """4,500 of 50,000 rows and 5,898 of 65,536 keys at keep = drop = .1."""
    inner, outer = rule.ranks(torch.tensor([keys]), 0)
    assert (int(inner), int(outer)) == ranks
    if rule == Ring() and keys > 100:
        assert ranks[1] - ranks[0] == {50_000: 4_500, 65_536: 5_898}[keys]


def test_the_band_follows_the_step():
    ring = Ring(BetweenEpochs(Linear(1.0, 0.1, 100), steps_per_epoch=2))
    counts = [ring.ranks(torch.tensor([1000]), step) for step in (0, 100, 200, 900)]
    assert [(int(inner), int(outer)) for inner, outer in counts] == [(100, 1000), (55, 550), (10, 100), (10, 100)]


def test_hardest_and_easiest_are_the_ends():
    cosine = torch.tensor([[0.3, 0.9, -0.2, 0.1, 0.5]])
    query, keys = synthetic.keys(1, 2, 0), synthetic.keys(5, 2, 1)
    assert columns_of(Hardest(Count(2))(synthetic.table(cosine), query, keys, 0)) == [[1, 4]]
    assert columns_of(Easiest(Count(2))(synthetic.table(cosine), query, keys, 0)) == [[2, 3]]


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_that_is_none_is_refused(share: float):
    query, keys = synthetic.keys(1, 2, 0), synthetic.keys(5, 2, 1)
    for rule in (
        Ring(Constant(share)),
        Ring(drop=Constant(share)),
        Ball(Constant(share)),
        Hardest(Share(Constant(share))),
    ):
        with pytest.raises(UserError, match=r"share must lie in \[0, 1\]"):
            rule(score(query, keys), query, keys, 0)
    with pytest.raises(UserError, match="at least 1"):
        Count(0)


@given(queries=st.integers(1, 4), pool=st.integers(1, 25), seed=st.integers(0, 9))
def test_loop_reference(queries: int, pool: int, seed: int):
    query, keys = pair(queries, pool, 5, seed)
    rings = [ranking.ring((query.vector[i].detach() @ keys.vector.T).tolist(), "0.5", "0.3") for i in range(queries)]
    expected = reference.partition(query.vector, keys.vector, rings, 0.07)
    log_sum = sum_negatives(query, keys, (Ring(Constant(0.5), Constant(0.3)),), 0.07, 0).log_sum
    assert_close(log_sum, expected, rtol=0, atol=1e-10)
    assert_close(gradient(log_sum, query), gradient(expected, query), rtol=0, atol=1e-10)


# Identities; the numbers are those of the project's list.


@given(queries=st.integers(1, 5), pool=st.integers(1, 30), seed=st.integers(0, 9))
def test_7_all_kept_and_none_dropped_is_plain(queries: int, pool: int, seed: int):
    query, keys = pair(queries, pool, pool, seed)
    whole = Ring(Constant(1.0), Constant(0.0))
    plain, actual = (sum_negatives(query, keys, rules, 0.1, 0).log_sum for rules in ((), (whole,)))
    assert_close(actual, plain, rtol=0, atol=1e-12)
    draws, within_ring = (negatives_of(query, keys, rules, 0) for rules in ((Sample(5),), (whole, Sample(5))))
    assert torch.equal(draws.key, within_ring.key) and torch.equal(draws.cosine, within_ring.cosine), "IR's draws"


def test_7_a_draw_from_the_ring_is_its_loss_on_the_same_indices():
    query, keys = pair(4, 200, 200, 0)
    ring, rules = Ring(Constant(0.3)), (Ring(Constant(0.3)), Sample(40))
    inside, draws = columns_of(negatives_of(query, keys, (ring,), 0)), negatives_of(query, keys, rules, 0)
    assert draws.keep.all() and draws.key.shape == (4, 40)
    assert all(set(draws.key[row].tolist()) <= set(inside[row]) for row in range(4))
    log_sum = sum_negatives(query, keys, rules, 0.1, 0).log_sum
    assert_close(log_sum, torch.logsumexp((query.vector @ keys.vector.T).gather(1, draws.key) / 0.1, 1))


def test_8_an_upper_tail_is_harder_for_draws_of_one_size_and_easier_as_a_whole():
    """Larger by stochastic dominance with 64 draws, here by a margin of 5 standard errors over 200 queries; the sum
    over the whole tail is smaller than over all keys, for every query."""
    query, keys = pair(200, 2000, 2000, 0)

    def log_sum_of(rules: tuple[Rule, ...]) -> Tensor:
        return sum_negatives(query, keys, rules, 0.2, 0).log_sum

    for keep in (0.5, 0.1, 0.02):
        tail = Ball(Constant(keep))
        more, plain = (
            sum_negatives(query, keys, rules, 0.2, 0).log_sum for rules in ((tail, Sample(64)), (Sample(64),))
        )
        gap = (more - plain).detach()
        assert float(gap.mean()) > 5 * float(gap.std()) / 200**0.5
        assert (
            sum_negatives(query, keys, (tail,), 0.2, 0).log_sum < sum_negatives(query, keys, (), 0.2, 0).log_sum
        ).all()


@pytest.mark.parametrize("rules", [(Ring(), Sample(100)), (Ball(), Sample(100)), (Sample(100),)])
def test_9_a_constant_critic_estimates_nothing(rules: tuple[Rule, ...]):
    """log(k + 1) − loss is 0 for keys that are all alike, conditional or not."""
    query = Keys(torch.ones(2, 1).double(), torch.arange(2), seed=torch.arange(2))
    keys = Keys(torch.ones(3000, 1).double(), torch.arange(3000))
    rest = sum_negatives(query, keys, rules, 0.07, 0).log_sum
    actual = InfoNCE(0.07)(synthetic.table(torch.ones(2, 1).double()), synthetic.negatives(rest), 0)
    assert_close(actual, torch.log(torch.full((2,), 101.0).double()), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_12_the_conditional_variance_falls_as_the_lower_cut_rises():
    """The variance over draws of log Z for a given query: 400 draws of 50 each, averaged over 20 queries."""
    query, keys = pair(20, 4000, 4000, 3)
    variances = []
    for keep in (1.0, 0.75, 0.5, 0.25, 0.1):
        rules = (Ball(Constant(keep)),)
        inside = negatives_of(query, keys, rules, 0)
        draws = torch.stack(
            [
                torch.logsumexp(Sample(50, salt=salt)(inside, query, keys, 0).cosine.detach() / 0.5, 1)
                for salt in range(400)
            ]
        )
        variances.append(float(draws.var(0).mean()))
    assert variances == sorted(variances, reverse=True) and variances[0] > 5 * variances[-1]


def test_18_a_ring_keeps_the_order_of_a_queue_out_of_it():
    """Which place of the queue a key has does not matter: the loss is that of the turned queue."""
    query, keys = pair(4, 90, 90, 1)
    rotated_keys = keys.rows(torch.arange(90).roll(17))
    assert_close(
        sum_negatives(query, keys, (Ring(),), 0.1, 0).log_sum,
        sum_negatives(query, rotated_keys, (Ring(),), 0.1, 0).log_sum,
        rtol=0,
        atol=1e-12,
    )


def test_parts_are_values():
    assert replace(Ring(), keep=Constant(0.2)) == Ring(Constant(0.2)) != Ring()
    assert isinstance(Ring(), Rule) and isinstance(Ring(), BandRule)
