"""The log-partition for pair rules, in chunks of keys for all queries at once.

b: queries   m: keys in the pool   d: width
"""

from collections.abc import Callable

import torch
from torch import Tensor

from vantage.cosines import BUDGET, full, in_full
from vantage.negatives import Rule
from vantage.partition.band import remaining_pairs
from vantage.records import Keys, Negatives

__all__ = ["sum_streaming"]

_CHUNK = 2048  # keys at a time on the CPU, fastest in measurements: the chunk of logits stays in the cache


def sum_streaming(
    query: Keys, pool: Keys, rules: tuple[Rule, ...], temperature: float, step: int, chunk: int | None = None
) -> Negatives:
    """`sum_negatives` for pair rules only, `chunk` keys at a time (by default as many as suit the device)."""
    if chunk is None:
        chunk = _CHUNK if query.vector.device.type == "cpu" else max(_CHUNK, BUDGET // (8 * max(1, len(query))))

    def keep(logits: Tensor, part: slice) -> Tensor:
        return remaining_pairs(logits, query, pool.rows(part), rules, step).keep

    def drop(logits: Tensor, part: slice) -> Tensor:
        return logits.masked_fill_(~keep(logits, part), -torch.inf)

    def count() -> Tensor:
        """Count in a separate pass, since most estimators need no count; pair rules do not need the cosines."""
        total, nothing = query.image.new_zeros(len(query)), query.vector.new_zeros(())
        for start in range(0, len(pool) if rules else 0, chunk):
            width = min(chunk, len(pool) - start)
            total += keep(nothing.expand(len(query), width), slice(start, start + width)).sum(1)
        return total if rules else total + len(pool)

    log_sum: Tensor = _Streaming.apply(  # pyright: ignore
        full(query.vector), full(pool.vector), drop if rules else None, temperature, chunk
    )
    return Negatives(log_sum, count)


class _Streaming(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx,
        query: Tensor,
        keys: Tensor,
        drop: Callable[[Tensor, slice], Tensor] | None,
        temperature: float,
        chunk: int,
    ) -> Tensor:
        ctx.drop, ctx.temperature, ctx.chunk = drop, temperature, chunk
        learn = ctx.needs_input_grad[1]
        logit_query = query / temperature
        top = query.new_full((len(query), 1), torch.finfo(query.dtype).min)  # finite: a row of −inf gives no nan
        mass, pull = torch.zeros_like(top), torch.zeros_like(query)
        buffer = query.new_empty(len(query), min(chunk, len(keys)))
        for start in range(0, len(keys), chunk):
            part = keys[start : start + chunk]
            logits = torch.mm(logit_query, part.T, out=buffer[:, : len(part)])
            if drop is not None:
                logits = drop(logits, slice(start, start + chunk))
            higher = torch.maximum(top, logits.amax(1, keepdim=True))
            fade = (top - higher).exp_()
            weight = logits.sub_(higher).exp_()
            mass.mul_(fade).add_(weight.sum(1, keepdim=True))
            if not learn:
                pull.mul_(fade).addmm_(weight, part)
            top = higher
        result = (top + mass.log()).squeeze(1)
        if learn:
            ctx.save_for_backward(query, keys, result)
        else:
            ctx.save_for_backward(pull.div_(mass.clamp_(min=torch.finfo(mass.dtype).tiny)).div_(temperature))
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    @in_full
    def backward(ctx, gradient: Tensor):  # pyright: ignore
        if not ctx.needs_input_grad[1]:
            return ctx.saved_tensors[0] * gradient[:, None], None, None, None, None
        query, keys, result = ctx.saved_tensors
        to_query, to_keys = torch.zeros_like(query), torch.empty_like(keys)
        logit_query, scale = query / ctx.temperature, gradient[:, None] / ctx.temperature
        floor = result.clamp(min=torch.finfo(result.dtype).min)[:, None]
        for start in range(0, len(keys), ctx.chunk):
            span = slice(start, start + ctx.chunk)
            logits = logit_query @ keys[span].T
            if ctx.drop is not None:
                logits = ctx.drop(logits, span)
            weight = logits.sub_(floor).exp_().mul_(scale)
            to_query.addmm_(weight, keys[span])
            to_keys[span] = weight.T @ query
        return to_query, to_keys, None, None, None
