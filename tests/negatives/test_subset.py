"""A random subset of the pool: simple, the same for all queries, and with a band after it equal in law to a draw."""

from dataclasses import replace

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch.testing import assert_close

from vantage.errors import UserError
from vantage.negatives import Count, Distinct, Hardest, OtherClusters, OtherImages, Rule, Sample, Share, Subset
from vantage.partition import negatives_of, sum_negatives, sum_table
from vantage.records import Keys
from vantage.schedules import Constant


def pair(queries: int, pool: int, seed: int) -> tuple[Keys, Keys]:
    label = torch.randint(4, (pool, 1), generator=torch.Generator().manual_seed(seed))
    query, keys = synthetic.keys(queries, 4, seed), synthetic.keys(pool, 4, seed + 1)
    query.vector.requires_grad_()
    return replace(query, cluster=label[torch.arange(queries) % pool]), replace(keys, cluster=label)


@given(count=st.integers(1, 60), keys=st.integers(1, 50), seed=st.integers(0, 10**6))
def test_so_many_different_columns_in_order(count: int, keys: int, seed: int):
    query = replace(synthetic.keys(3, 2, 0), step_seed=seed)
    column = Subset(count).subset_of(query, keys).tolist()
    assert len(column) == min(count, keys) and column == sorted(set(column)) and set(column) <= set(range(keys))
    assert column == Subset(count).subset_of(query.rows(torch.tensor([1])), keys).tolist(), (
        "not a matter of the queries"
    )


@pytest.mark.slow
def test_every_subset_is_as_likely():
    """All 20 subsets of 3 of 6 columns, over 8,000 steps."""
    query = synthetic.keys(1, 2, 0)
    times: dict[tuple[int, ...], int] = {}
    for seed in range(8000):
        subset = tuple(Subset(3).subset_of(replace(query, step_seed=seed), 6).tolist())
        times[subset] = times.get(subset, 0) + 1
    assert len(times) == 20 and chisquare(list(times.values())).pvalue > 1e-3


def test_steps_and_salts_draw_others():
    query = synthetic.keys(1, 2, 0)
    one, two, three = (
        Subset(20, salt).subset_of(replace(query, step_seed=step), 200).tolist()
        for step, salt in ((0, 0), (1, 0), (0, 1))
    )
    assert one != two and one != three and two != three


RULES: tuple[tuple[Rule, ...], ...] = (
    (),
    (OtherImages(),),
    (OtherClusters(), Hardest(Share(Constant(0.3)))),
    (Hardest(Count(3)),),
    (OtherClusters(), Hardest(Share(Constant(0.5))), Distinct(3)),
    (Sample(4),),
    (Subset(5, salt=1),),
)


@given(pool=st.integers(1, 60), count=st.integers(1, 70), seed=st.integers(0, 30))
@pytest.mark.parametrize("rest", RULES, ids=str)
def test_the_narrowed_pool_equals_the_table(rest: tuple[Rule, ...], pool: int, count: int, seed: int):
    query, keys = pair(5, pool, seed)
    rules = (Subset(count), *rest)
    log_sum, expected = (
        sum_negatives(query, keys, rules, 0.2, 0).log_sum,
        sum_table(query, keys, rules, 0.2, 0, budget=3000).log_sum,
    )
    assert_close(log_sum, expected, rtol=0, atol=1e-12)
    weight = torch.where(torch.isfinite(expected), torch.linspace(0.5, 2.0, 5).double(), 0.0)
    ours, theirs = (
        torch.autograd.grad((torch.where(torch.isfinite(part), part, 0.0) * weight).sum(), query.vector)[0]
        for part in (log_sum, expected)
    )
    assert_close(ours, theirs, rtol=0, atol=1e-11)


@pytest.mark.parametrize("rest", RULES[:3], ids=str)
def test_keys_that_learn_get_their_gradient_through_the_narrowed_pool(rest: tuple[Rule, ...]):
    query, keys = pair(4, 30, 1)
    keys = replace(keys, vector=keys.vector.requires_grad_())
    rules = (Subset(17), *rest)
    ours, theirs = (
        torch.autograd.grad(sum_of(query, keys, rules, 0.2, 0).log_sum.sum(), (query.vector, keys.vector))
        for sum_of in (sum_negatives, sum_table)
    )
    for mine, other in zip(ours, theirs, strict=True):
        assert_close(mine, other, rtol=0, atol=1e-11)


@pytest.mark.slow
def test_the_hardest_of_a_subset_are_a_draw_from_the_semi_hard_pool():
    """400 draws: the mean loss is the exact pool's within 4 standard errors; the pool, R − 1 for the first rank R that
    the subset does not take, has its negative-hypergeometric mean and spread; each of the nearest is drawn as often."""
    query, keys = pair(4, 2000, 2)
    draws, exact, pools, times = [], [], [], torch.zeros(2000)
    order = (query.vector @ keys.vector.T)[0].argsort(descending=True)
    size, count = 500, 50
    for step in range(400):
        seeds = synthetic.query_seeds(3, step, torch.arange(4))
        queries = replace(query, vector=query.vector.detach(), seed=seeds, step_seed=step)
        draws.append(sum_negatives(queries, keys, (Subset(size), Hardest(Count(count))), 0.2, 0).log_sum)
        rules = (Hardest(Share(Constant(0.1))), Distinct(count))
        exact.append(torch.logsumexp(negatives_of(queries, keys, rules, 0).logits(0.2), 1))
        rank = torch.isin(order, Subset(size).subset_of(queries, 2000)).nonzero()[:, 0]
        pools.append(int(rank[count]))
        times[order[rank[:count]]] += 1
    ours, theirs = torch.stack(draws), torch.stack(exact)
    error = (ours.var(0) / 400 + theirs.var(0) / 400).sqrt()
    # The pool has 200.4 rows in the mean, not 200: a shift far below the error.
    assert ((ours.mean(0) - theirs.mean(0)).abs() < 4 * error).all()
    # Misses before hit 51 of 500 among 1,500: negative-hypergeometric.
    hits, misses = count + 1, 2000 - size
    mean = hits * misses / (size + 1) + count
    variance = hits * misses * 2001 * (size + 1 - hits) / ((size + 1) ** 2 * (size + 2))
    pool = torch.tensor(pools).double()
    assert abs(float(pool.mean()) - mean) < 4 * (variance / 400) ** 0.5
    assert abs(float(pool.var()) / variance - 1) < 0.35
    assert chisquare(times[order[:120]].numpy()).pvalue > 1e-3


def test_a_fitted_subset_never_grows_and_nothing_is_refused():
    assert Subset(163_840).fit_to(1_281_167, 256).count == 163_840
    assert Subset(163_840, salt=2).fit_to(50_000, 256) == Subset(50_000, salt=2), "a set that fits is taken whole"
    assert Subset(163_840, share=0.128).fit_to(50_000, 256).count == 6_400
    assert Subset(163_840).fit_to(1_000, 256).count == 1_000 and Subset(50).fit_to(10**6, 256).count == 50
    with pytest.raises(UserError, match="at least 1"):
        Subset(0)
    with pytest.raises(UserError, match="not a share"):
        Subset(5, share=0.0)
    with pytest.raises(UserError, match="step_seed"):
        Subset(3).subset_of(Keys(torch.eye(2), torch.arange(2)), 9)
