"""The log-partition for negatives drawn from a band of ranks: InterCLR's semi-hard pool, Ring on a bank.

As for a band, all keys are scored for a few rows at a time and selected without sorting. On a CPU only the drawn keys
are summed, and random numbers are made only for keys in the band. On a GPU fetching the drawn keys would take longer
than a product with all of them, each as often as it was drawn.

b: queries   m: keys in the pool   r: rows of a tile   k: keys drawn   d: width
"""

from collections.abc import Callable

import torch
from torch import Tensor

from vantage.cosines import BUDGET, full, in_full, sum_of_columns
from vantage.negatives import BandRule, Draw, Rule
from vantage.negatives.ranks import BandColumns, columns_within, within
from vantage.negatives.sample import DrawResult
from vantage.partition.band import cosine_tiles, remaining_pairs, sum_columns, tile_rows
from vantage.partition.table import softmax
from vantage.records import Keys, Negatives

__all__ = ["sum_band_draw"]

_DRAWN_BYTES = 48  # per pair when a GPU draws: it makes random numbers for every key, in a few tables at once


def sum_band_draw(
    query: Keys,
    pool: Keys,
    before: tuple[Rule, ...],
    band: BandRule,
    draw: Draw,
    temperature: float,
    step: int,
    rows: int | None = None,
) -> Negatives:
    """`sum_negatives` for pair rules, a band of ranks and a draw from it, `rows` queries at a time (by default as many
    as suit the device). The keys get no gradient."""
    keeps = list[Tensor]()

    def draws_of(cosine: Tensor, part: slice) -> DrawResult:
        tile = query.rows(part)
        scores = remaining_pairs(cosine, tile, pool, before, step)
        keep, (inner, outer, most) = scores.keep, band.edges(scores, step)
        if cosine.device.type == "cpu":
            tables = cosine.numpy(), keep.numpy(), inner.tolist(), outer.tolist()
            result = draw.of_rows(lambda row: columns_within(*(table[row] for table in tables)), len(pool), tile)
        else:
            result = draw.among(within(cosine.masked_fill(~keep, -torch.inf), inner, outer, most).inside, tile)
        keeps.append(result.keep)  # counted when an estimator needs it
        return result

    def times_of(cosine: Tensor, part: slice) -> BandColumns:
        column, keep = draws_of(cosine, part)
        times = torch.zeros_like(cosine).scatter_add_(1, column, keep.to(cosine.dtype))  # whole, so in any order
        return BandColumns(times, cosine.masked_fill(times == 0, -torch.inf).amax(1))

    rows = rows or tile_rows(query, pool)
    vectors = full(query.vector), full(pool.vector.detach())
    if query.vector.device.type == "cpu":
        log_sum: Tensor = _DrawsFromBand.apply(*vectors, draws_of, temperature, rows)  # pyright: ignore
    else:
        rows = max(1, min(rows, BUDGET // (_DRAWN_BYTES * max(1, len(pool)))))
        log_sum = sum_columns(*vectors, times_of, temperature, rows)
    return Negatives(log_sum, lambda: torch.cat([log_sum.new_zeros(0, dtype=torch.int64), *(k.sum(1) for k in keeps)]))


class _DrawsFromBand(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx, query: Tensor, keys: Tensor, draw: Callable[[Tensor, slice], DrawResult], temperature: float, rows: int
    ) -> Tensor:
        result, pull = query.new_empty(len(query)), torch.empty_like(query)
        for part, cosine in cosine_tiles(query, keys, rows):
            column, keep = draw(cosine, part)
            logits = cosine.gather(1, column).div_(temperature).masked_fill_(~keep, -torch.inf)
            result[part], weight = softmax(logits)
            pull[part] = sum_of_columns(weight, column, keys).div_(temperature)
        ctx.save_for_backward(pull)
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    @in_full
    def backward(ctx, gradient: Tensor):  # pyright: ignore
        return ctx.saved_tensors[0] * gradient[:, None], None, None, None, None
