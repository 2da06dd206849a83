"""Which path sums the negatives of each query.

b: queries   m: keys in the pool
"""

from itertools import takewhile

import torch

from vantage.negatives import BandRule, Draw, PairRule, PoolRule, Rule
from vantage.partition.band import sum_band
from vantage.partition.band_draw import sum_band_draw
from vantage.partition.shards import scores_of_shards, sum_over_shards
from vantage.partition.streaming import sum_streaming
from vantage.partition.table import negatives_of, sum_table
from vantage.records import Keys, Negatives, Pool, Scores, Shard

__all__ = ["scores_of_negatives", "sum_negatives"]


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
            return sum_streaming(query, pool, rules, temperature, step)
        before, after = _split(rules)
        if not pool.vector.requires_grad:
            match after:
                case (BandRule() as ranks,):
                    return sum_band(query, pool, before, ranks, temperature, step)
                case (BandRule() as ranks, Draw() as draw):
                    return sum_band_draw(query, pool, before, ranks, draw, temperature, step)
        return sum_table(query, pool, rules, temperature, step)


def _split(rules: tuple[Rule, ...]) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """The leading pair rules, and the rest."""
    before = tuple(takewhile(lambda rule: isinstance(rule, PairRule), rules))
    return before, rules[len(before) :]
