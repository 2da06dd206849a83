"""Exact ranks among columns that are spread over processes, without exchanging values.

Each process sorts its values once. Floats are mapped to integers of the same order, and the integer at a rank is found
digit by digit in base 256: four exchanges of 256 counts for float32, eight for 64 bits.

b: queries of all processes   n: columns here   e: ranks looked up
"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from vantage import processes

__all__ = ["largest_of_all", "within_all"]

_BITS = 8  # bits of a digit


def within_all(value: Float[Tensor, "b n"], inner: Int[Tensor, "b"], outer: Int[Tensor, "b"]) -> Bool[Tensor, "b n"]:
    """`vantage.negatives.ranks.within` over the columns of all processes, concatenated in process order: the columns
    here whose rank is in [inner, outer). Every process must pass the same queries."""
    inside = largest_of_all(value, torch.stack([inner, outer], 1))
    return inside[1] & ~inside[0]


@torch.no_grad()
def largest_of_all(value: Shaped[Tensor, "b n"], rank: Int[Tensor, "b e"]) -> Bool[Tensor, "e b n"]:
    """Whether each value is among the `rank` largest of its row over all processes; among equal values, the first ones
    are."""
    value = value.detach()
    least = _value_of_rank(_in_order(value), rank)
    parts = []
    for number in range(rank.shape[1]):
        above, equal = value > least[:, number, None], value == least[:, number, None]
        counts = processes.gather(torch.stack([above.sum(1), equal.sum(1)])[None])
        room = rank[:, number] - counts[:, 0].sum(0) - counts[: processes.rank(), 1].sum(0)
        parts.append(above | (equal & (equal.cumsum(1) <= room[:, None])))
    return torch.stack(parts)


def _in_order(value: Shaped[Tensor, "b n"]) -> Shaped[Tensor, "b n"]:
    if value.device.type == "cpu":  # torch takes many times as long to sort
        return torch.from_numpy(np.sort(value.numpy(), axis=1))
    return value.sort(1).values


def _value_of_rank(values: Shaped[Tensor, "b n"], rank: Int[Tensor, "b e"]) -> Shaped[Tensor, "b e"]:
    """The value at each rank, counted from 1 for the largest over all processes; for rank 0 a value above all."""
    bits, digits = 8 * values.element_size(), torch.arange(1 << _BITS, device=values.device)
    number = torch.full_like(rank, -(1 << (bits - 1)))
    for shift in range(bits - _BITS, -1, -_BITS):
        probe = _from_number(number[..., None] + (digits << shift), values.dtype)
        below = torch.searchsorted(values, probe.flatten(1)).view(probe.shape)
        enough = processes.total(values.shape[1] - below) >= rank[..., None]
        number = number + ((enough * digits).amax(2) << shift)
    value = _from_number(number, values.dtype)
    return value.masked_fill(rank == 0, torch.inf) if value.is_floating_point() else value


def _from_number(number: Int[Tensor, "*s"], dtype: torch.dtype) -> Shaped[Tensor, "*s"]:
    """The value that has this number in the order of all values of `dtype`; a number that stands for no value gives
    nan."""
    if dtype == torch.int64:
        return number
    whole = torch.int64 if dtype == torch.float64 else torch.int32
    number = number.to(whole)
    return (number ^ ((number >> 63 if whole == torch.int64 else number >> 31) & torch.iinfo(whole).max)).view(dtype)
