"""Rules that keep a band of ranks, the selection behind them, and their way to the log-partition."""

from dataclasses import replace

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from pretend_gpu import Pretend, Pretended, values
from references import losses as reference
from references import ranks as ranking
from torch import Tensor
from torch.testing import assert_close

from vantage.errors import UserError
from vantage.estimators import InfoNCE
from vantage.negatives import (
    AbsoluteRing,
    Ball,
    BandRule,
    Count,
    Distinct,
    Easiest,
    Hardest,
    OtherImages,
    Ring,
    Rule,
    Sample,
    Share,
)
from vantage.negatives.ranks import within
from vantage.partition import band, log_partition, negatives_of, sum_negatives, table
from vantage.records import Keys, Scores, score
from vantage.schedules import BetweenEpochs, Constant, Linear

SHARES = st.integers(0, 100).map(lambda hundredths: f"{hundredths / 100:.2f}")
BANDS: tuple[BandRule, ...] = (
    Ring(),
    Ring(Constant(0.5), Constant(0.5)),
    AbsoluteRing(Constant(0.8), Constant(0.3)),
    Ball(Constant(0.3)),
    Ball(Constant(1.0)),
    Hardest(Count(4)),
    Easiest(Share(Constant(0.4))),
)


def columns_of(scores: Scores) -> list[list[int]]:
    return [sorted(scores.key[row][scores.keep[row]].tolist()) for row in range(len(scores.key))]


def pair(queries: int, pool: int, images: int, seed: int) -> tuple[Keys, Keys]:
    query, keys = synthetic.keys(queries, 4, seed, images), synthetic.keys(pool, 4, seed + 1, images)
    query.vector.requires_grad_()
    return query, keys


def gradient(result: Tensor, query: Keys) -> Tensor:
    weight = torch.linspace(0.5, 2.0, len(result), dtype=result.dtype)
    finite = torch.where(torch.isfinite(result), result, 0.0)
    return torch.autograd.grad((finite * weight).sum(), query.vector, retain_graph=True)[0]


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


@given(
    rows=st.integers(1, 5), columns=st.integers(1, 50), seed=st.integers(0, 99), levels=st.sampled_from([2, 5, 10**6])
)
def test_selection_gives_exactly_the_ranks(rows: int, columns: int, seed: int, levels: int):
    generator = torch.Generator().manual_seed(seed)
    value = torch.randint(0, levels, (rows, columns), generator=generator).double()
    edges = torch.randint(0, columns + 1, (rows, 2), generator=generator).sort(1).values
    selection = within(value, edges[:, 0], edges[:, 1])
    order = value.sort(dim=1, descending=True, stable=True).indices
    for row in range(rows):
        band = order[row, edges[row, 0] : edges[row, 1]]
        assert sorted(band.tolist()) == selection.inside[row].nonzero()[:, 0].tolist()
        assert selection.largest[row] == (value[row, band[0]] if len(band) else -torch.inf)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_share_the_rows(threads: int):
    before = torch.get_num_threads()
    value = torch.rand(7, 40_000, generator=torch.Generator().manual_seed(0))
    try:
        torch.set_num_threads(threads)
        selection = within(value, torch.full((7,), 400), torch.full((7,), 4000))
    finally:
        torch.set_num_threads(before)
    ordered_values = value.sort(dim=1, descending=True).values
    expected = (value <= ordered_values[:, 400:401]) & (value >= ordered_values[:, 3999:4000])
    assert torch.equal(selection.inside, expected) and selection.inside.sum(1).tolist() == [3600] * 7


@given(queries=st.integers(1, 6), pool=st.integers(1, 40), images=st.integers(1, 9), rows=st.integers(1, 7))
def test_the_band_way_equals_the_table(queries: int, pool: int, images: int, rows: int):
    query, keys = pair(queries, pool, images, pool)
    for last in BANDS:
        for before in ((), (OtherImages(),)):
            expected = table(query, keys, (*before, last), 0.1, 0).log_sum
            log_sum = band(query, keys, before, last, 0.1, 0, rows).log_sum
            assert_close(log_sum, expected, rtol=0, atol=1e-12)
            assert_close(gradient(log_sum, query), gradient(expected, query), rtol=0, atol=1e-11)


def test_the_way_is_chosen_by_the_rules(monkeypatch: pytest.MonkeyPatch):
    from vantage import partition

    calls: list[str] = []
    for name in ("band", "band_draw", "table", "streaming"):
        function = getattr(partition, name)
        monkeypatch.setattr(
            partition, name, lambda *arguments, name=name, function=function: calls.append(name) or function(*arguments)
        )
    query, keys = pair(3, 30, 9, 0)
    cases: list[tuple[tuple[Rule, ...], str]] = [
        ((Ring(),), "band"),
        ((OtherImages(), Ball()), "band"),
        ((Ring(), Sample(3)), "band_draw"),
        ((OtherImages(), Hardest(), Distinct(3)), "band_draw"),
        ((Ring(), Sample(3), OtherImages()), "table"),
        ((Ring(), OtherImages()), "table"),
        ((Hardest(), Ring()), "table"),
        ((OtherImages(),), "streaming"),
    ]
    for rules, _ in cases:
        log_partition(query, keys, rules, 0.1, 0)
    learning = Keys(keys.vector.clone().requires_grad_(), keys.image)
    log_partition(query, learning, (Ring(),), 0.1, 0)
    assert calls == [*(function for _, function in cases), "table"], "keys that learn take the table"


def test_the_band_of_keys_that_learn_gives_them_a_gradient():
    query, keys = pair(3, 30, 9, 0)
    learning = Keys(keys.vector.clone().requires_grad_(), keys.image)
    log_sum = log_partition(query, learning, (Ring(Constant(0.5)),), 0.1, 0)
    scores = negatives_of(query, learning, (Ring(Constant(0.5)),), 0)
    expected = torch.logsumexp(scores.logits(0.1), 1)
    ours, theirs = (torch.autograd.grad(value.sum(), learning.vector)[0] for value in (log_sum, expected))
    assert_close(ours, theirs, rtol=0, atol=1e-12)


@given(queries=st.integers(1, 4), pool=st.integers(1, 25), seed=st.integers(0, 9))
def test_loop_reference(queries: int, pool: int, seed: int):
    query, keys = pair(queries, pool, 5, seed)
    rings = [ranking.ring((query.vector[i].detach() @ keys.vector.T).tolist(), "0.5", "0.3") for i in range(queries)]
    expected = reference.partition(query.vector, keys.vector, rings, 0.07)
    log_sum = log_partition(query, keys, (Ring(Constant(0.5), Constant(0.3)),), 0.07, 0)
    assert_close(log_sum, expected, rtol=0, atol=1e-10)
    assert_close(gradient(log_sum, query), gradient(expected, query), rtol=0, atol=1e-10)


def test_a_query_without_pairs_gives_minus_infinity_and_no_gradient():
    query = Keys(synthetic.vectors(3, 4, 0).requires_grad_(), torch.tensor([7, 7, 1]))
    keys = Keys(synthetic.vectors(5, 4, 1), torch.full((5,), 7))
    for dtype in (torch.float32, torch.float64):
        queries = Keys(query.vector.detach().to(dtype).requires_grad_(), query.image)
        log_sum = log_partition(queries, Keys(keys.vector.to(dtype), keys.image), (OtherImages(), Ring()), 0.1, 0)
        assert torch.isneginf(log_sum[:2]).all() and torch.isfinite(log_sum[2])
        torch.nn.functional.softplus(log_sum).sum().backward()
        to_query = queries.vector.grad
        assert to_query is not None and (to_query[:2] == 0).all() and to_query[2].abs().sum() > 0


def test_the_precision_is_float32_also_under_autocast_and_for_half_vectors():
    query, keys = synthetic.keys(4, 16, 0, dtype=torch.float32), synthetic.keys(200, 16, 1, dtype=torch.float32)
    query.vector.requires_grad_()
    plain = log_partition(query, keys, (Ring(),), 0.1, 0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under_autocast = log_partition(query, keys, (Ring(),), 0.1, 0)
        assert torch.equal(gradient(under_autocast, query), gradient(plain, query))
    assert under_autocast.dtype == torch.float32 and torch.equal(under_autocast, plain)
    half = Keys(query.vector.detach().bfloat16().requires_grad_(), query.image)
    log_sum = log_partition(half, Keys(keys.vector.bfloat16(), keys.image), (Ring(),), 0.1, 0)
    exact = log_partition(
        Keys(half.vector.detach().float(), half.image),
        Keys(keys.vector.bfloat16().float(), keys.image),
        (Ring(),),
        0.1,
        0,
    )
    assert log_sum.dtype == torch.float32 and torch.equal(log_sum.detach(), exact)


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
    log_sum = log_partition(query, keys, rules, 0.1, 0)
    assert_close(log_sum, torch.logsumexp((query.vector @ keys.vector.T).gather(1, draws.key) / 0.1, 1))


def test_8_an_upper_tail_is_harder_for_draws_of_one_size_and_easier_as_a_whole():
    """Larger by stochastic dominance with 64 draws, here by a margin of 5 standard errors over 200 queries; the sum
    over the whole tail is smaller than over all keys, for every query."""
    query, keys = pair(200, 2000, 2000, 0)
    for keep in (0.5, 0.1, 0.02):
        tail = Ball(Constant(keep))
        more, plain = (log_partition(query, keys, rules, 0.2, 0) for rules in ((tail, Sample(64)), (Sample(64),)))
        gap = (more - plain).detach()
        assert float(gap.mean()) > 5 * float(gap.std()) / 200**0.5
        assert (log_partition(query, keys, (tail,), 0.2, 0) < log_partition(query, keys, (), 0.2, 0)).all()


@pytest.mark.parametrize("rules", [(Ring(), Sample(100)), (Ball(), Sample(100)), (Sample(100),)])
def test_9_a_constant_critic_estimates_nothing(rules: tuple[Rule, ...]):
    """log(k + 1) − loss is 0 for keys that are all alike, conditional or not."""
    query = Keys(torch.ones(2, 1).double(), torch.arange(2), seed=torch.arange(2))
    keys = Keys(torch.ones(3000, 1).double(), torch.arange(3000))
    rest = log_partition(query, keys, rules, 0.07, 0)
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
        log_partition(query, keys, (Ring(),), 0.1, 0),
        log_partition(query, rotated_keys, (Ring(),), 0.1, 0),
        rtol=0,
        atol=1e-12,
    )


@pytest.mark.gpu
@pytest.mark.parametrize("last", BANDS, ids=str)
@pytest.mark.parametrize("before", [(), (OtherImages(),)])
def test_gpu_equals_cpu(last: BandRule, before: tuple[Rule, ...]):
    query, keys = pair(9, 300, 20, seed=2)
    gpu_query = Keys(query.vector.detach().cuda().requires_grad_(), query.image.cuda())
    pool = Keys(keys.vector.cuda(), keys.image.cuda())
    ours, theirs = (band(q, k, before, last, 0.1, 0, 4).log_sum for q, k in ((query, keys), (gpu_query, pool)))
    assert_close(ours, theirs.cpu(), rtol=0, atol=1e-10)
    assert_close(gradient(ours, query), gradient(theirs.cpu(), gpu_query).cpu(), rtol=0, atol=1e-10)


@pytest.mark.parametrize("levels", [2, 5, 10**6])
@pytest.mark.parametrize("where", ["the CPU", "the device"])
@pytest.mark.parametrize("equal", [True, False])
def test_a_pretended_device_selects_as_the_cpu_and_is_not_waited_for(levels: int, where: str, equal: bool):
    generator = torch.Generator().manual_seed(0)
    value = torch.randint(0, levels, (6, 50), generator=generator).double()
    edges = torch.randint(0, 51, (6, 2), generator=generator).sort(1).values
    if equal:
        edges = torch.tensor([[4, 16]]).expand(6, -1)
    expected = within(value, edges[:, 0], edges[:, 1])
    with Pretend() as mode:
        edges_there = Pretended(edges.contiguous()) if where == "the device" else edges
        selection = within(Pretended(value), edges_there[:, 0], edges_there[:, 1], 50)
    assert torch.equal(values(selection.inside), expected.inside) and mode.waits == []
    assert torch.equal(values(selection.largest), expected.largest)


@pytest.mark.gpu
@pytest.mark.parametrize("levels", [2, 5, 10**6])
@pytest.mark.parametrize("equal", [True, False])
def test_gpu_selects_as_the_cpu(levels: int, equal: bool):
    generator = torch.Generator().manual_seed(0)
    value = torch.randint(0, levels, (6, 500), generator=generator).double()
    edges = torch.randint(0, 501, (6, 2), generator=generator).sort(1).values
    if equal:
        edges = torch.tensor([[40, 160]]).expand(6, -1)
    on_cpu, on_gpu = within(value, edges[:, 0], edges[:, 1]), within(value.cuda(), edges[:, 0], edges[:, 1])
    assert torch.equal(on_cpu.inside, on_gpu.inside.cpu()) and torch.equal(on_cpu.largest, on_gpu.largest.cpu())


def test_parts_are_values():
    assert replace(Ring(), keep=Constant(0.2)) == Ring(Constant(0.2)) != Ring()
    assert isinstance(Ring(), Rule) and isinstance(Ring(), BandRule)
