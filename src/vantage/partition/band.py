"""The log-partition for a band of ranks. For a few rows at a time, all keys are scored, selected, and summed in place.

b: queries   m: keys in the pool   r: rows of a tile   d: width
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vantage.cosines import BUDGET, full, in_full
from vantage.negatives import BandRule, Rule
from vantage.negatives.ranks import BandColumns, within
from vantage.records import Keys, Negatives, Scores

__all__ = ["sum_band", "cosine_tiles", "cosines", "remaining_pairs", "sum_columns", "tile_rows"]

_TILE = 2**24  # bytes of a tile on the CPU: 64 rows of 65,536 keys, fastest in measurements
_MANY = 64  # with fewer queries on the left of the product, CPU libraries run at a third of their speed
_BLOCK = 8192  # number of keys whose cosines with so few queries stay in the cache until they are transposed


def sum_band(
    query: Keys,
    pool: Keys,
    before: tuple[Rule, ...],
    last: BandRule,
    temperature: float,
    step: int,
    rows: int | None = None,
) -> Negatives:
    """`sum_negatives` for pair rules followed by a band of ranks, `rows` queries at a time (by default as many as suit
    the device). The keys get no gradient."""
    rows, sizes = rows or tile_rows(query, pool), list[Tensor]()

    def select(cosine: Tensor, part: slice) -> BandColumns:
        pairs = remaining_pairs(cosine, query.rows(part), pool, before, step)
        if before:
            cosine.masked_fill_(~pairs.keep, -torch.inf)
        inner, outer, most = last.edges(pairs, step)
        sizes.append((outer - inner).clamp(min=0).to(cosine.device, non_blocking=True))
        return within(cosine, inner, outer, most)

    vectors = full(query.vector), full(pool.vector.detach())
    log_sum = sum_columns(*vectors, select, temperature, rows)
    return Negatives(log_sum, lambda: torch.cat([query.image.new_zeros(0), *sizes]))


def sum_columns(
    query: Float[Tensor, "b d"],
    keys: Float[Tensor, "m d"],
    select: Callable[[Tensor, slice], BandColumns],
    temperature: float,
    rows: int,
) -> Float[Tensor, "b"]:
    """log Σ exp(q·k/τ) over the columns that `select` finds in the cosines of some queries, `rows` queries at a time.
    Differentiable once, with respect to the queries."""
    return _Band.apply(query, keys, select, temperature, rows)  # pyright: ignore[reportReturnType]


def tile_rows(query: Keys, pool: Keys) -> int:
    """Number of queries whose cosines with all keys make a tile that suits the device."""
    bytes_of_row = max(1, len(pool)) * full(query.vector[:0]).element_size()
    suits = BUDGET // 4 if query.vector.device.type == "cuda" else _TILE
    return max(1, min(max(suits // bytes_of_row, _MANY), 2 * BUDGET // (3 * bytes_of_row)))


def cosines(query: Float[Tensor, "r d"], keys: Float[Tensor, "m d"], out: Float[Tensor, "r m"]) -> Float[Tensor, "r m"]:
    """The inner product of each query with each key, written to `out`."""
    if query.device.type != "cpu" or len(query) >= _MANY:
        return torch.mm(query, keys.T, out=out)
    for start in range(0, len(keys), _BLOCK):
        part = slice(start, start + _BLOCK)
        out[:, part] = (keys[part] @ query.T).T
    return out


def cosine_tiles(
    query: Float[Tensor, "b d"], keys: Float[Tensor, "m d"], rows: int
) -> Iterator[tuple[slice, Float[Tensor, "r m"]]]:
    """The cosines of a few rows at a time with all keys, and which rows they are. Each tile overwrites the last one."""
    buffer = query.new_empty(min(rows, len(query)), len(keys))
    for start in range(0, len(query), rows):
        tile = query[start : start + rows]
        yield slice(start, start + rows), cosines(tile, keys, buffer[: len(tile)])


def remaining_pairs(
    cosine: Float[Tensor, "r m"], query: Keys, pool: Keys, rules: tuple[Rule, ...], step: int
) -> Scores:
    """The pairs that these rules leave."""
    scores = Scores.whole(cosine, torch.arange(len(pool), device=cosine.device).expand_as(cosine))
    for rule in rules:
        scores = rule(scores, query, pool, step)
    return scores


class _Band(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx, query: Tensor, keys: Tensor, select: Callable[[Tensor, slice], BandColumns], temperature: float, rows: int
    ) -> Tensor:
        result, pull = query.new_empty(len(query)), torch.empty_like(query)
        for part, cosine in cosine_tiles(query, keys, rows):
            inside, top = select(cosine, part)
            # Dropped after the exponential, since exp(−inf) takes twenty times as long as that of a finite number.
            shift = top.clamp(min=torch.finfo(top.dtype).min)[:, None]
            _drop(cosine.sub_(shift).clamp_(max=0.0).div_(temperature).exp_(), inside)
            mass = cosine.sum(1)
            result[part] = top / temperature + mass.log()
            scale = mass.clamp(min=torch.finfo(mass.dtype).tiny).mul_(temperature)
            torch.mm(cosine, keys, out=pull[part]).div_(scale[:, None])
        ctx.save_for_backward(pull)
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    @in_full
    def backward(ctx, gradient: Tensor):  # pyright: ignore
        return ctx.saved_tensors[0] * gradient[:, None], None, None, None, None


def _drop(weight: Tensor, inside: Tensor) -> None:
    """Set weights outside the band to zero, in place."""
    if weight.device.type == "cpu":  # torch takes five times as long as NumPy to multiply numbers with flags
        np.multiply(weight.numpy(), inside.numpy(), out=weight.numpy())
    else:
        weight.mul_(inside)
