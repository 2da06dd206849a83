"""Cosines with drawn keys. Each query has its own keys, so they are fetched in tiles of query rows.

b: queries   m: keys in the pool   n: keys drawn for each query   r: rows of a tile   d: width
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage.cosines.precision import BUDGET, in_full

__all__ = ["column_cosines", "sum_of_columns"]

_TILE = BUDGET // 4  # bytes of the keys of a tile, which the product may copy
_PIECES = 32  # into which a GPU divides the keys of a query; it adds up those of a piece one after the other


def column_cosines(
    query: Float[Tensor, "b d"], keys: Float[Tensor, "m d"], column: Int[Tensor, "b n"], budget: int = _TILE
) -> Float[Tensor, "b n"]:
    """q · k of every query with the keys at its columns. The b·n fetched keys are never in memory at once, in either
    pass, but at most `budget` bytes of them. Differentiable once, with respect to queries and keys."""
    return _ColumnCosines.apply(query, keys, column, budget)  # pyright: ignore[reportReturnType]


def sum_of_columns(
    weight: Float[Tensor, "b n"], column: Int[Tensor, "b n"], keys: Float[Tensor, "m d"]
) -> Float[Tensor, "b d"]:
    """Σ_j weight_j · key_j over the columns of each query, without a tensor of queries × columns × width."""
    if not column.numel():
        return keys.new_zeros(len(column), keys.shape[1])
    pieces = 1 if keys.device.type == "cpu" else math.gcd(column.shape[1], _PIECES)
    tables = (table.reshape(len(table) * pieces, -1) for table in (column, weight))
    total = _embedding_sum(keys, *tables)
    return total if pieces == 1 else total.view(len(column), pieces, -1).sum(1)


def _embedding_sum(keys: Tensor, column: Tensor, weight: Tensor) -> Tensor:
    return torch.nn.functional.embedding_bag(column, keys, per_sample_weights=weight, mode="sum")


class _ColumnCosines(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query: Tensor, keys: Tensor, column: Tensor, budget: int) -> Tensor:
        ctx.rows = max(1, budget // max(1, column.shape[1] * keys.shape[1] * keys.element_size()))
        ctx.save_for_backward(query, keys, column)
        tiles = zip(query.split(ctx.rows), column.split(ctx.rows), strict=True)
        return torch.cat([torch.einsum("rd,rnd->rn", part, keys[at]) for part, at in tiles])

    @staticmethod
    @torch.autograd.function.once_differentiable
    @in_full
    def backward(ctx, gradient: Tensor):  # pyright: ignore[reportIncompatibleMethodOverride]
        query, keys, column = ctx.saved_tensors
        gradient = gradient.to(keys.dtype)
        to_query = to_keys = None
        if ctx.needs_input_grad[0]:
            to_query = sum_of_columns(gradient, column, keys).to(query.dtype)
        if ctx.needs_input_grad[1]:
            to_keys = torch.zeros_like(keys)
            tiles = (tensor.split(ctx.rows) for tensor in (query.to(keys.dtype), column, gradient))
            for part, at, weight in zip(*tiles, strict=True):
                to_keys.index_add_(0, at.flatten(), (weight[:, :, None] * part[:, None]).flatten(0, 1))
        return to_query, to_keys, None, None
