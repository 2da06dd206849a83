"""Negatives in a sharded bank: the queries are sent to the rows.

Each process scores the queries of all processes against its own rows, and the results are joined: sums of exponentials
are added, ranks are counted over all processes, and a drawn row is scored by the process that holds it. For each query
only its vector, a few numbers and the counts for ranks are exchanged; rows never are.

b: queries here   w_b: queries of all processes   n: columns   s: rows here
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from vantage import processes
from vantage.cosines import column_cosines, gather_queries
from vantage.errors import UserError
from vantage.negatives import BlindRule, PairRule, PoolRule, Rule, ShardRule
from vantage.partition.streaming import sum_streaming
from vantage.partition.table import rows_of_table, sum_in_tiles
from vantage.records import Keys, Negatives, Scores, Shard, rows_here, score

__all__ = ["scores_of_shards", "sum_over_shards"]


def sum_over_shards(query: Keys, pool: Shard, rules: tuple[Rule, ...], temperature: float, step: int) -> Negatives:
    """`sum_negatives` for a pool of which each process holds a share. Raises `UserError` for a rule that cannot work on
    shards. Every process must make this call."""
    pool, rules = _narrow(query, pool, rules)
    queries = gather_queries(query)
    if all(isinstance(rule, PairRule) for rule in rules):
        part = sum_streaming(queries, pool.local, rules, temperature, step)
    else:
        rows = rows_of_table(queries, -(-len(pool) // processes.count()))  # equal on every process
        part = sum_in_tiles(queries, pool.local, _selection(pool, rules, step), temperature, rows)
    log_sum: Tensor = _SumOverProcesses.apply(part.log_sum)  # pyright: ignore[reportAssignmentType]
    return Negatives(log_sum, lambda: processes.own_total(part.count))


def scores_of_shards(query: Keys, pool: Shard, rules: tuple[Rule, ...], step: int) -> Scores:
    """`negatives_of` for a pool of which each process holds a share. It needs a draw among the rules, since otherwise
    every process would need a column for every row of the bank."""
    pool, rules = _narrow(query, pool, rules)
    draw = next((rule for rule in rules if isinstance(rule, BlindRule)), None)
    if draw is None:
        raise UserError(
            "this estimator looks at every negative by itself, which a sharded bank allows only of rows drawn with"
            " Sample: end the rules with it, or use the bank with sharded=False"
        )
    queries = gather_queries(query)
    scores = _selection(pool, rules, step)(queries, pool.local)
    if not len(pool.local):  # no row of a narrowed pool is here, but queries still need a gradient: all exchange it
        nothing = (queries.vector[:, :1] * 0.0).expand(-1, draw.most(len(pool)))
        scores = Scores(nothing, nothing.long(), nothing.bool())
    key = (scores.key + pool.first).masked_fill(~scores.keep, 0)
    cosine = processes.own_total(scores.cosine.masked_fill(~scores.keep, 0.0))
    return Scores(cosine, processes.own_total(key), processes.own_total(scores.keep.long()) > 0)


def _narrow(query: Keys, pool: Shard, rules: tuple[Rule, ...]) -> tuple[Shard, tuple[Rule, ...]]:
    while rules and isinstance(rules[0], PoolRule):
        pool, rules = pool.narrow(rules[0].subset_of(query, len(pool))), rules[1:]
    return pool, rules


def _selection(pool: Shard, rules: tuple[Rule, ...], step: int) -> Callable[[Keys, Keys], Scores]:
    """Applies the rules to queries, which are the same on every process, and the keys of this process."""

    def select(query: Keys, keys: Keys) -> Scores:
        first, rest = rules[0], rules
        if isinstance(first, BlindRule):
            rest = rules[1:]
        if isinstance(first, BlindRule) and len(keys):
            column, mine = rows_here(first.blindly(query, len(pool)), pool.first, len(keys))
            scores = Scores(column_cosines(query.vector, keys.vector, column), column, mine)
        else:
            scores = score(query, keys)
        for rule in rest:
            match rule:
                case PairRule():
                    scores = rule(scores, query, keys, step)
                case ShardRule():
                    scores = rule.on_shard(scores, query, pool.first, step)
                case _:
                    raise UserError(
                        f"{type(rule).__name__} cannot select from a sharded bank: give it an on_shard,"
                        " or take sharded=False"
                    )
        return scores

    return select


class _SumOverProcesses(torch.autograd.Function):
    """log Σ exp over the processes' results for all queries; returns the part for the queries of this process."""

    @staticmethod
    def forward(ctx: Any, part: Tensor) -> Tensor:
        whole = torch.logsumexp(processes.gather(part[None]), 0)
        ctx.save_for_backward(part, whole)
        return processes.own_rows(whole).clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        part, whole = ctx.saved_tensors
        share = (part - whole.clamp(min=torch.finfo(whole.dtype).min)).exp_()
        return processes.gather(gradient) * share
