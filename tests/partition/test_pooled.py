"""Draws from a band of ranks: the way to the log-partition that sums the drawn keys only, and what it selects by."""

from dataclasses import replace

import numpy as np
import pytest
import synthetic
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pretend_gpu import Pretend, Pretended, values
from torch import Tensor
from torch.testing import assert_close

from vantage import draws
from vantage.negatives import (
    AbsoluteRing,
    BandRule,
    Count,
    Distinct,
    Draw,
    Easiest,
    Hardest,
    OtherClusters,
    OtherImages,
    Ring,
    Rule,
    Sample,
    Share,
)
from vantage.negatives.ranks import columns_within, within
from vantage.partition import sum_band_draw, sum_negatives, sum_table
from vantage.records import Keys
from vantage.schedules import Constant

BANDS: tuple[BandRule, ...] = (
    Hardest(Share(Constant(0.1))),
    Hardest(Count(7)),
    Easiest(Share(Constant(0.4))),
    Ring(Constant(0.5), Constant(0.3)),
    AbsoluteRing(Constant(0.8), Constant(0.3)),
)
DRAWS = (Sample(5), Distinct(5), Distinct(300, salt=3))


def pair(queries: int, pool: int, seed: int, dtype: torch.dtype = torch.float64) -> tuple[Keys, Keys]:
    label = torch.randint(4, (pool, 1), generator=torch.Generator().manual_seed(seed))
    query, keys = synthetic.keys(queries, 4, seed, dtype=dtype), synthetic.keys(pool, 4, seed + 1, dtype=dtype)
    query.vector.requires_grad_()
    return replace(query, cluster=label[torch.arange(queries) % pool]), replace(keys, cluster=label)


def gradient(result: Tensor, query: Keys) -> Tensor:
    weight = torch.linspace(0.5, 2.0, len(result), dtype=result.dtype, device=result.device)
    finite = torch.where(torch.isfinite(result), result, 0.0)
    return torch.autograd.grad((finite * weight).sum(), query.vector)[0]


@settings(max_examples=25)
@given(
    before=st.sampled_from([(), (OtherClusters(),), (OtherImages(), OtherClusters())]),
    sample=st.sampled_from(DRAWS),
    pool=st.integers(1, 60),
    rows=st.integers(1, 7),
    seed=st.integers(0, 30),
)
@pytest.mark.parametrize("band", BANDS, ids=str)
def test_equal_to_the_table(before: tuple[Rule, ...], band: BandRule, sample: Sample, pool: int, rows: int, seed: int):
    """Also where one cluster holds the whole pool, and queries keep nothing."""
    query, keys = pair(5, pool, seed)
    expected = sum_table(query, keys, (*before, band, sample), 0.2, 0, budget=3000).log_sum
    log_sum = sum_band_draw(query, keys, before, band, sample, 0.2, 0, rows).log_sum
    assert_close(log_sum, expected, rtol=0, atol=1e-12)
    assert_close(gradient(log_sum, query), gradient(expected, query), rtol=0, atol=1e-11)


@pytest.mark.parametrize("sample", DRAWS, ids=str)
@pytest.mark.parametrize("threads", [1, 3])
def test_equal_to_the_table_where_rows_are_long(sample: Sample, threads: int):
    """So long that a bound is drawn from a sample of the row."""
    query, keys = pair(9, 40_000, 1)
    rules = (OtherClusters(), Hardest(Share(Constant(0.1))), sample)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        log_sum, expected = (
            sum_negatives(query, keys, rules, 0.2, 0).log_sum,
            sum_table(query, keys, rules, 0.2, 0).log_sum,
        )
    finally:
        torch.set_num_threads(before)
    assert_close(log_sum, expected, rtol=0, atol=1e-12)
    assert_close(gradient(log_sum, query), gradient(expected, query), rtol=0, atol=1e-11)


@pytest.mark.parametrize("sample", DRAWS, ids=str)
@pytest.mark.parametrize("band", BANDS, ids=str)
def test_a_device_sums_each_key_as_often_as_it_is_drawn(band: BandRule, sample: Sample):
    """Also where all keys are in the cluster of some queries, which keep nothing."""
    query, keys = pair(5, 60, 3)
    keys = replace(keys, cluster=query.clusters[:1].expand(60, 1))
    rules = (OtherClusters(), band, sample)
    expected = sum_table(query, keys, rules, 0.2, 0).log_sum
    with Pretend() as mode:
        there = _pretended(query, query.vector.detach()), _pretended(keys, keys.vector)
        there[0].vector.requires_grad_()
        log_sum = sum_negatives(*there, rules, 0.2, 0).log_sum
        slope = gradient(log_sum, there[0])
    assert mode.waits == [] and not torch.isfinite(expected).all() and torch.isfinite(expected).any()
    assert_close(values(log_sum), expected, rtol=0, atol=1e-12)
    assert_close(values(slope), gradient(expected, query), rtol=0, atol=1e-11)


def _pretended(keys: Keys, vector: Tensor) -> Keys:
    fields = {name: getattr(keys, name) for name in ("image", "cluster", "seed")}
    on_device = {name: None if value is None else Pretended(value) for name, value in fields.items()}
    return replace(keys, vector=Pretended(vector), **on_device)


def test_gradient():
    query, keys = pair(4, 30, 2)
    rules = (OtherClusters(), Hardest(Share(Constant(0.5))), Distinct(4))
    assert torch.autograd.gradcheck(
        lambda vector: sum_negatives(replace(query, vector=vector), keys, rules, 0.2, 0).log_sum, (query.vector,)
    )


@given(
    rows=st.integers(1, 3),
    columns=st.integers(1, 50),
    seed=st.integers(0, 99),
    levels=st.sampled_from([1, 2, 5, 10**6]),
)
@pytest.mark.parametrize("sample_size", [1, 3, 61])
def test_columns_within_are_those_of_within(sample_size: int, rows: int, columns: int, seed: int, levels: int):
    """Whatever the sample of the row shows: here it may be most of the row, or one value."""
    generator = torch.Generator().manual_seed(seed)
    value = torch.randint(0, levels, (rows, columns), generator=generator).double()
    keep = torch.rand(value.shape, generator=generator) < 0.8
    edges = (torch.rand(rows, 2, generator=generator) * (keep.sum(1, keepdim=True) + 1)).long().sort(1).values
    expected = within(value.masked_fill(~keep, -torch.inf), edges[:, 0], edges[:, 1]).inside
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vantage.negatives.ranks._LONG", 2)
        patch.setattr("vantage.negatives.ranks._SAMPLE", sample_size)
        for row, (inner, outer) in enumerate(edges.tolist()):
            selection = columns_within(value[row].numpy(), keep[row].numpy(), inner, outer)
            assert selection.tolist() == expected[row].nonzero()[:, 0].tolist()


def test_a_row_whose_sample_misleads():
    value = np.zeros(61_000)
    value[::61] = np.arange(1, 1001)
    for outer in (999, 1000, 1001, 6100, 60_999):
        expected = within(torch.from_numpy(value)[None], torch.tensor([10]), torch.tensor([outer])).inside[0]
        assert np.array_equal(
            columns_within(value, np.ones(61_000, np.bool_), 10, outer), expected.nonzero()[:, 0].numpy()
        )


@given(
    columns=st.integers(1, 60), count=st.integers(1, 40), salt=st.integers(0, 9), seed=st.integers(0, 2**31),
    kind=st.sampled_from([Sample, Distinct]),
)  # fmt: skip
def test_devices_draw_alike(columns: int, count: int, salt: int, seed: int, kind: type[Draw]):
    """What a device draws, in torch; what the CPU draws, row by row; and the definition."""
    sample, query = kind(count, salt), synthetic.keys(4, 2, seed)
    keep = torch.rand(4, columns, generator=torch.Generator().manual_seed(seed)) < 0.5
    keep[0] = False
    on_cpu = sample.among(keep, query)
    on_device = sample.on_device(keep, query)
    for row in range(4):
        columns_of = [sample_of.column[row][sample_of.keep[row]].tolist() for sample_of in (on_cpu, on_device)]
        available = keep[row].nonzero()[:, 0].tolist()
        one = query.seeds[row : row + 1]
        if kind is Sample and available:
            expected = [available[n] for n in draws.integers(one, count, len(available), salt)[0].tolist()]
            assert columns_of == [expected, expected]
        else:
            number = draws.uniforms(one, columns, salt)[0].tolist()
            expected = sorted(available, key=lambda column: -number[column])[:count]  # noqa: B023
            assert [sorted(part) for part in columns_of] == [sorted(expected)] * 2


@given(seed=st.integers(-(2**63), 2**63 - 1), salt=st.integers(0, 1 << 17))
def test_bits_of_some_columns(seed: int, salt: int):
    every = draws.bits(torch.tensor([seed]), 40, salt)[0].numpy().view(np.uint64)
    column = np.array([3, 0, 39, 7])
    assert np.array_equal(draws.bits_at(seed, column, salt), every[column])


@pytest.mark.gpu
@pytest.mark.parametrize("sample", DRAWS, ids=str)
def test_gpu_equals_cpu(sample: Draw):
    query, keys = pair(9, 3000, 1)
    rules = (OtherClusters(), Hardest(Share(Constant(0.1))), sample)

    def run(device: str) -> list[Tensor]:
        queries, pool_keys = (
            Keys(
                part.vector.detach().to(device), part.image.to(device), part.clusters.to(device), part.seeds.to(device)
            )
            for part in (query, keys)
        )
        queries.vector.requires_grad_()
        log_sum = sum_negatives(queries, pool_keys, rules, 0.2, 0).log_sum
        return [part.cpu() for part in (log_sum, gradient(log_sum, queries))]

    for on_cpu, on_gpu in zip(run("cpu"), run("cuda"), strict=True):
        assert_close(on_cpu, on_gpu, rtol=0, atol=1e-10)
