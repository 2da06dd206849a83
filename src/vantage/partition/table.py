"""The log-partition for any rules, from a table of scores in tiles of query rows; other paths are tested against it.

b: queries   m: keys in the pool   r: rows of a tile   n: keys scored   d: width
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.cosines import BUDGET, column_cosines, full, in_full, sum_of_columns
from vantage.negatives import BlindRule, Rule
from vantage.records import Keys, Negatives, Scores, score

__all__ = ["negatives_of", "rows_of_table", "softmax", "sum_in_tiles", "sum_table"]

_GATHER_COST = 32  # fetching one key at random costs as much as scoring about this many keys in a matrix product


def sum_table(
    query: Keys, pool: Keys, rules: tuple[Rule, ...], temperature: float, step: int, budget: int = BUDGET
) -> Negatives:
    """`sum_negatives` for any rules, in tiles of query rows of at most `budget` bytes; other paths are tested against
    it."""
    rows = rows_of_table(query, len(pool), budget)
    return sum_in_tiles(query, pool, lambda part, keys: negatives_of(part, keys, rules, step), temperature, rows)


def rows_of_table(query: Keys, keys: int, budget: int = BUDGET) -> int:
    """Number of queries whose table with this many keys is within the budget."""
    # Per pair: cosine, logit, weight and their temporaries, and the 64-bit numbers of a rule that draws.
    pair = 4 * full(query.vector[:0]).element_size() + 4 * 8
    return max(1, budget // (max(1, keys) * pair))


def sum_in_tiles(
    query: Keys, pool: Keys, select: Callable[[Keys, Keys], Scores], temperature: float, rows: int
) -> Negatives:
    """The log-sum-exp of the scores that `select` returns for queries and keys, `rows` queries at a time."""
    sizes = dict[int, Tensor]()  # by the first row of a tile, since a backward pass may compute the tile again

    def tile(vector: Tensor, keys: Tensor, part: slice) -> Scores:
        scores = select(replace(query.rows(part), vector=vector), replace(pool, vector=keys))
        sizes[part.start] = scores.count
        return scores

    log_sum: Tensor = _Table.apply(full(query.vector), full(pool.vector), tile, temperature, rows)  # pyright: ignore
    return Negatives(log_sum, lambda: torch.cat([query.image.new_zeros(0), *sizes.values()]))


def negatives_of(query: Keys, pool: Keys, rules: tuple[Rule, ...], step: int) -> Scores:
    """The scores that the rules leave, as one differentiable table."""
    first = rules[0] if rules else None
    if isinstance(first, BlindRule) and first.most(len(pool)) * _GATHER_COST <= len(pool):
        column = first.blindly(query, len(pool))
        cosine = column_cosines(query.vector, pool.vector, column)
        scores, rules = Scores(cosine, column, torch.ones_like(column, dtype=torch.bool)), rules[1:]
    else:
        scores = score(query, pool)
    for rule in rules:
        scores = rule(scores, query, pool, step)
    return scores


def softmax(logits: Float[Tensor, "b n"]) -> tuple[Float[Tensor, "b"], Float[Tensor, "b n"]]:
    """Log-sum-exp and softmax of each row; a row may consist of −inf alone."""
    total = torch.logsumexp(logits, 1)
    return total, (logits - total.clamp(min=torch.finfo(total.dtype).min)[:, None]).exp_()


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
        learn = ctx.needs_input_grad[1]  # if so, the backward pass recomputes the tiles, since it scales their weights
        result = query.new_empty(len(query))
        pull = None if learn else torch.empty_like(query)
        for start in range(0, len(query), rows):
            part = slice(start, start + rows)
            scores = tile(query[part], keys, part)
            result[part], weight = softmax(scores.logits(temperature))
            if pull is not None:
                pull[part] = _weighted_sum(weight, scores, keys).div_(temperature)
        ctx.save_for_backward(query, keys) if learn else ctx.save_for_backward(pull)
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    @in_full
    def backward(ctx, gradient: Tensor):  # pyright: ignore
        if not ctx.needs_input_grad[1]:
            return ctx.saved_tensors[0] * gradient[:, None], None, None, None, None
        query, keys = ctx.saved_tensors
        to_query, to_keys = torch.empty_like(query), torch.zeros_like(keys)
        for start in range(0, len(query), ctx.rows):
            part = slice(start, start + ctx.rows)
            scores = ctx.tile(query[part], keys, part)
            weight = softmax(scores.logits(ctx.temperature))[1].mul_(gradient[part, None] / ctx.temperature)
            to_query[part] = _weighted_sum(weight, scores, keys)
            dense = weight if _whole(scores, keys) else _spread(weight, scores, keys)
            to_keys.addmm_(dense.T, query[part])
        return to_query, to_keys, None, None, None


def _whole(scores: Scores, keys: Tensor) -> bool:
    """Whether no rule narrowed the columns: column j is key j in every row (an expanded index has row stride 0)."""
    return scores.key.shape[1] == len(keys) and scores.key.stride(0) == 0


def _weighted_sum(weight: Tensor, scores: Scores, keys: Tensor) -> Tensor:
    """Σ_j weight_j · key_j, without a tensor of rows × columns × width."""
    if _whole(scores, keys):
        return weight @ keys
    return sum_of_columns(weight, scores.key, keys)


def _spread(weight: Tensor, scores: Scores, keys: Tensor) -> Tensor:
    return weight.new_zeros(len(weight), len(keys)).scatter_add_(1, scores.key, weight)
