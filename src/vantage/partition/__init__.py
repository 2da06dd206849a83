"""The log-sum-exp over each query's negatives, with its gradient from the same pass.

The gradient of log Σ exp(q·k/τ) with respect to q is softmax(q·k/τ) k / τ: attention with values = keys. So a pass over
the keys can accumulate it together with the sum, and nothing as large as queries × keys is kept for the backward pass.
There are several paths to the same number, chosen by what the rules declare (`vantage.negatives.rule`) and tested to be
equal:

* *table*: any rules; tiles of query rows, as many rows as the byte budget allows;
* *streaming*: only pair rules, so no key depends on another; chunks of keys, for all rows at once;
* *band*: pair rules, then one that keeps a band of ranks; tiles of rows over all keys, selected without sorting;
* *band draw*: the same, then a draw; selected in the same way, but only the drawn keys are summed;
* *subset*: a first rule that keeps the same random subset for all queries narrows the pool; the other rules take their
  own path;
* *drawn*: a first rule that draws columns without looking at cosines; only the drawn keys are scored, if that is
  cheaper;
* *shards*: any of these rules on a sharded bank.

b: queries   m: keys in the pool   r: rows of a tile   n: keys scored   d: width
"""

from itertools import takewhile

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.negatives import BandRule, Draw, PairRule, PoolRule, Rule
from vantage.partition.band import band
from vantage.partition.band_draw import band_draw
from vantage.partition.shards import scores_of_shards, sum_over_shards
from vantage.partition.streaming import streaming
from vantage.partition.table import negatives_of, table
from vantage.records import Keys, Negatives, Pool, Scores, Shard

__all__ = [
    "band",
    "log_partition",
    "negatives_of",
    "band_draw",
    "scores_of_negatives",
    "streaming",
    "sum_negatives",
    "table",
]


def scores_of_negatives(query: Keys, pool: Pool, rules: tuple[Rule, ...], step: int) -> Scores:
    """The scores that the rules leave, as one differentiable table."""
    if isinstance(pool, Shard):
        return scores_of_shards(query, pool, rules, step)
    return negatives_of(query, pool, rules, step)


def sum_negatives(query: Keys, pool: Pool, rules: tuple[Rule, ...], temperature: float, step: int) -> Negatives:
    """log Σ_j exp(q·k_j/τ) over the negatives that the rules leave, −inf for a query with none; and their number.

    Computed in float32 (float64 for float64 input), also under autocast, since these similarities decide what is
    selected.
    Differentiable once, with respect to the queries and, if they require it, to the keys.
    """
    if isinstance(pool, Shard):
        with torch.autocast(query.vector.device.type, enabled=False):
            return sum_over_shards(query, pool, rules, temperature, step)
    if rules and isinstance(rules[0], PoolRule):
        subset = pool.rows(rules[0].subset_of(query, len(pool)))
        return sum_negatives(query, subset, rules[1:], temperature, step)
    with torch.autocast(query.vector.device.type, enabled=False):
        if all(isinstance(rule, PairRule) for rule in rules):
            return streaming(query, pool, rules, temperature, step)
        before, after = _split(rules)
        if not pool.vector.requires_grad:
            match after:
                case (BandRule() as ranks,):
                    return band(query, pool, before, ranks, temperature, step)
                case (BandRule() as ranks, Draw() as draw):
                    return band_draw(query, pool, before, ranks, draw, temperature, step)
        return table(query, pool, rules, temperature, step)


def log_partition(
    query: Keys, pool: Keys, rules: tuple[Rule, ...], temperature: float, step: int
) -> Float[Tensor, "b"]:
    """Only the sum of `sum_negatives`: log Σ_j exp(q·k_j/τ), −inf for a query without negatives."""
    return sum_negatives(query, pool, rules, temperature, step).log_sum


def _split(rules: tuple[Rule, ...]) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """The leading pair rules, and the rest."""
    before = tuple(takewhile(lambda rule: isinstance(rule, PairRule), rules))
    return before, rules[len(before) :]
