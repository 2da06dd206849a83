"""Cosines with drawn keys: equal to those of keys fetched all at once, and bounded."""

import pytest
import torch
from pretend_gpu import Pretend, Pretended, values
from synthetic import vectors
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from vantage.cosines.columns import column_cosines, sum_of_columns


class Largest(TorchDispatchMode):
    """Remembers the most elements that any tensor had."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        output = func(*args, **(kwargs or {}))
        for tensor in output if isinstance(output, tuple | list) else (output,):
            if isinstance(tensor, Tensor):
                self.elements = max(self.elements, tensor.numel())
        return output


def columns(queries: int, count: int, keys: int) -> Tensor:
    return torch.randint(keys, (queries, count), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("budget", [1, 8 * 5 * 4 * 3, 2**20])
def test_equal_to_fetching_all_keys_at_once(budget: int) -> None:
    query, keys, column = vectors(7, 4, 1).requires_grad_(), vectors(11, 4, 2).requires_grad_(), columns(7, 5, 11)
    weight = torch.randn(7, 5, dtype=torch.float64)
    whole = torch.einsum("bd,bnd->bn", query, keys[column])
    in_tiles = column_cosines(query, keys, column, budget)
    assert torch.allclose(in_tiles, whole, rtol=0, atol=1e-14)
    expected = torch.autograd.grad((whole * weight).sum(), (query, keys))
    for ours, theirs in zip(torch.autograd.grad((in_tiles * weight).sum(), (query, keys)), expected, strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-13)
    assert torch.autograd.gradcheck(lambda q, k: column_cosines(q, k, column, budget), (query, keys))


@pytest.mark.parametrize("keys_learn", [False, True])
def test_no_tensor_is_as_large_as_all_drawn_keys(keys_learn: bool) -> None:
    query = vectors(32, 16, 1, torch.float32).requires_grad_()
    keys = vectors(500, 16, 2, torch.float32).requires_grad_(keys_learn)
    tile = 4 * 64 * 16  # elements of the keys of four queries
    with Largest() as largest:
        column_cosines(query, keys, columns(32, 64, 500), 4 * tile).sum().backward()
    assert tile <= largest.elements <= max(tile, keys.numel()) < 32 * 64 * 16


@pytest.mark.parametrize(("queries", "count"), [(0, 8), (7, 0), (1, 1), (7, 5), (7, 96), (3, 40)])
def test_a_device_adds_the_keys_in_pieces(queries: int, count: int) -> None:
    """Into which any number of keys divides; columns may be a part of a wider table."""
    keys, column = vectors(11, 4, 2), columns(queries, count + 2, 11)[:, 1:-1]
    weight = torch.randn(count, queries, dtype=torch.float64).T
    expected = torch.einsum("bn,bnd->bd", weight, keys[column])
    assert torch.allclose(sum_of_columns(weight, column, keys), expected, rtol=0, atol=1e-13)
    with Pretend() as mode:
        there = sum_of_columns(Pretended(weight), Pretended(column), Pretended(keys))
    assert torch.allclose(values(there), expected, rtol=0, atol=1e-13) and mode.waits == []
