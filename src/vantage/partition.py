"""The negatives' log-sum-exp, one number per query, with its gradient from the same pass.

The gradient of log Σ exp(q·k/τ) to q is softmax(q·k/τ) k / τ: attention with values = keys. So a pass over the keys can
accumulate it beside the sum, and nothing as large as queries × keys is kept for the backward pass. Ways to the same
number, chosen by the kinds of the rules and tested equal:

* *table*: any rules; tiles of query rows, as many as the byte budget allows;
* *streaming*: only pair rules, so no key depends on another; chunks of keys, for all rows at once;
* *drawn*: a first rule that draws columns without looking; only the drawn keys are scored, when that is cheaper.

b: queries   m: keys in the pool   r: rows of a tile   n: keys scored   d: width
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.negatives import PairRule, Rule, Sample
from vantage.records import Keys, Scores, score

__all__ = ["BUDGET", "log_partition", "negatives_of", "streaming", "table"]

BUDGET = 256 * 2**20
"""Bytes that a table or a chunk of it may take."""

_CHUNK = 2048  # keys at a time on CPU, measured best: the chunk of logits stays in cache
_GATHER_COST = 32  # fetching one key at random costs about as much as scoring this many in a matrix product


def log_partition(
    query: Keys, pool: Keys, rules: tuple[Rule, ...], temperature: float, step: int
) -> Float[Tensor, "b"]:
    """log Σ_j exp(q·k_j/τ) over the negatives that the rules leave; −inf for a query with none.

    Computed in float32 (float64 for float64 input), also under autocast, since these similarities select.
    Differentiable once, to the queries and, where they ask for it, to the keys.
    """
    with torch.autocast(query.vector.device.type, enabled=False):
        if all(isinstance(rule, PairRule) for rule in rules):
            return streaming(query, pool, rules, temperature, step)
        return table(query, pool, rules, temperature, step)


def table(
    query: Keys, pool: Keys, rules: tuple[Rule, ...], temperature: float, step: int, budget: int = BUDGET
) -> Float[Tensor, "b"]:
    """`log_partition` for any rules, in tiles of query rows: the oracle. `budget` bounds a tile, in bytes."""
    # Per pair: cosine, logit, weight and their temporaries, and the 64-bit numbers of a rule that draws.
    pair = 4 * _full(query.vector[:0]).element_size() + 4 * 8
    rows = max(1, budget // (max(1, len(pool)) * pair))

    def tile(vector: Tensor, keys: Tensor, part: slice) -> Scores:
        asked = query.rows(part)
        asked = Keys(vector, asked.image, asked.cluster, asked.seed)
        return negatives_of(asked, Keys(keys, pool.image, pool.cluster), rules, step)

    return _Table.apply(_full(query.vector), _full(pool.vector), tile, temperature, rows)  # pyright: ignore


def streaming(
    query: Keys, pool: Keys, rules: tuple[Rule, ...], temperature: float, step: int, chunk: int | None = None
) -> Float[Tensor, "b"]:
    """`log_partition` for pair rules only, `chunk` keys at a time (by default what suits the device)."""
    if chunk is None:
        chunk = _CHUNK if query.vector.device.type == "cpu" else max(_CHUNK, BUDGET // (8 * max(1, len(query))))

    def drop(logits: Tensor, part: slice) -> Tensor:
        keys = pool.rows(part)
        column = torch.arange(len(keys), device=logits.device).expand_as(logits)
        keep = torch.ones((), dtype=torch.bool, device=logits.device).expand_as(logits)
        scores = Scores(logits, column, keep)
        for rule in rules:
            scores = rule(scores, query, keys, step)
        return logits.masked_fill_(~scores.keep, -torch.inf)

    return _Streaming.apply(  # pyright: ignore
        _full(query.vector), _full(pool.vector), drop if rules else None, temperature, chunk
    )


def negatives_of(query: Keys, pool: Keys, rules: tuple[Rule, ...], step: int) -> Scores:
    """The scores that the rules leave, as one differentiable table."""
    first = rules[0] if rules else None
    if isinstance(first, Sample) and first.replacement and first.count * _GATHER_COST <= len(pool):
        column = first.columns(query, len(pool))
        cosine = torch.einsum("bd,bnd->bn", query.vector, pool.vector[column])
        scores, rules = Scores(cosine, column, torch.ones_like(column, dtype=torch.bool)), rules[1:]
    else:
        scores = score(query, pool)
    for rule in rules:
        scores = rule(scores, query, pool, step)
    return scores


def _full(vector: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
    return vector if vector.dtype == torch.float64 else vector.float()


def _softmax(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Log-sum-exp and softmax of rows, where a row may have nothing but −inf."""
    total = torch.logsumexp(logits, 1)
    return total, (logits - total.clamp(min=torch.finfo(total.dtype).min)[:, None]).exp_()


def _in_full(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward pass that keeps its precision where somebody calls it under autocast."""

    @functools.wraps(backward)
    def full(ctx: Any, gradient: Tensor) -> Any:
        with torch.autocast(gradient.device.type, enabled=False):
            return backward(ctx, gradient)

    return full


class _Table(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx,
        query: Tensor,
        keys: Tensor,
        tile: Callable[[Tensor, Tensor, slice], Scores],
        temperature: float,
        rows: int,
    ) -> Tensor:
        ctx.tile, ctx.temperature, ctx.rows = tile, temperature, rows
        learn = ctx.needs_input_grad[1]  # then the backward pass makes the tiles again: weights depend on its gradient
        result = query.new_empty(len(query))
        pull = None if learn else torch.empty_like(query)
        for start in range(0, len(query), rows):
            part = slice(start, start + rows)
            scores = tile(query[part], keys, part)
            result[part], weight = _softmax(scores.logits(temperature))
            if pull is not None:
                pull[part] = _weighted(weight, scores, keys).div_(temperature)
        ctx.save_for_backward(query, keys) if learn else ctx.save_for_backward(pull)
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    @_in_full
    def backward(ctx, gradient: Tensor):  # pyright: ignore
        if not ctx.needs_input_grad[1]:
            return ctx.saved_tensors[0] * gradient[:, None], None, None, None, None
        query, keys = ctx.saved_tensors
        to_query, to_keys = torch.empty_like(query), torch.zeros_like(keys)
        for start in range(0, len(query), ctx.rows):
            part = slice(start, start + ctx.rows)
            scores = ctx.tile(query[part], keys, part)
            weight = _softmax(scores.logits(ctx.temperature))[1].mul_(gradient[part, None] / ctx.temperature)
            to_query[part] = _weighted(weight, scores, keys)
            dense = weight if _whole(scores, keys) else _spread(weight, scores, keys)
            to_keys.addmm_(dense.T, query[part])
        return to_query, to_keys, None, None, None


def _whole(scores: Scores, keys: Tensor) -> bool:
    """Whether no rule narrowed: column j is key j for every row (an expanded index has no row stride)."""
    return scores.key.shape[1] == len(keys) and scores.key.stride(0) == 0


def _weighted(weight: Tensor, scores: Scores, keys: Tensor) -> Tensor:
    """Σ_j weight · key, without a tensor of rows × columns × width."""
    if _whole(scores, keys):
        return weight @ keys
    return torch.nn.functional.embedding_bag(scores.key, keys, per_sample_weights=weight, mode="sum")


def _spread(weight: Tensor, scores: Scores, keys: Tensor) -> Tensor:
    return weight.new_zeros(len(weight), len(keys)).scatter_add_(1, scores.key, weight)


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
        scaled = query / temperature
        top = query.new_full(
            (len(query), 1), torch.finfo(query.dtype).min
        )  # finite, so that a row of −inf gives no nan
        mass, pull = torch.zeros_like(top), torch.zeros_like(query)
        buffer = query.new_empty(len(query), min(chunk, len(keys)))
        for start in range(0, len(keys), chunk):
            part = keys[start : start + chunk]
            logits = torch.mm(scaled, part.T, out=buffer[:, : len(part)])
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
    @_in_full
    def backward(ctx, gradient: Tensor):  # pyright: ignore
        if not ctx.needs_input_grad[1]:
            return ctx.saved_tensors[0] * gradient[:, None], None, None, None, None
        query, keys, result = ctx.saved_tensors
        to_query, to_keys = torch.zeros_like(query), torch.empty_like(keys)
        scaled, scale = query / ctx.temperature, gradient[:, None] / ctx.temperature
        floor = result.clamp(min=torch.finfo(result.dtype).min)[:, None]
        for start in range(0, len(keys), ctx.chunk):
            span = slice(start, start + ctx.chunk)
            logits = scaled @ keys[span].T
            if ctx.drop is not None:
                logits = ctx.drop(logits, span)
            weight = logits.sub_(floor).exp_().mul_(scale)
            to_query.addmm_(weight, keys[span])
            to_keys[span] = weight.T @ query
        return to_query, to_keys, None, None, None
