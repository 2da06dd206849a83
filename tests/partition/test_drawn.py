"""Cosines with drawn keys: equal to those of keys fetched all at once, and bounded."""

import pytest
import torch
from synthetic import vectors
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from vantage.cosines.columns import column_cosines


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
