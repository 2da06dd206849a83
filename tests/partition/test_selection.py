"""The selection behind rules that keep a band: exactly the ranks, by threads and on devices too."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pretend_gpu import Pretend, Pretended, values

from vantage.negatives.ranks import within


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
