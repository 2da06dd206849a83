"""The small runs that `ranks.py` trains on one process and on several."""

from dataclasses import replace
from typing import Any

import small_recipes

from vantage.composition.fitting import everywhere
from vantage.encoders import BatchNorm, SplitBatchNorm
from vantage.memory import StoreOf
from vantage.negatives import Ring
from vantage.positives import NearMates
from vantage.recipes import (
    RECIPES,
    VARIANTS,
    cmc,
    everything,
    infomin,
    local_aggregation,
    local_aggregation_warmed,
    moco_v2,
    ring_moco,
    simclr,
)
from vantage.schedules import ByEpoch, Constant, FollowsLoss
from vantage.training.run import Run

JOINT = (simclr, moco_v2, infomin, cmc, everything)
"""Recipes that are also tried without BatchNorm and with BatchNorm over the joint batch. They cover every role, heads
with BatchNorm, and patches."""
ACCUMULATED = (moco_v2, simclr)
"""Recipes, one with a queue and one with the negatives of the batch, that are also tried in accumulated parts."""

UNEVEN = ("local_aggregation", "local_aggregation_warmed", "two_aggregations")
"""Runs in which a query may have no positive. They are tried with many such queries, also in accumulated parts."""


def cases() -> dict[str, Any]:
    """Every recipe with BatchNorm in two groups, made small; some also without BatchNorm, with it in one group, and in
    two accumulated parts."""
    runs = {}
    for recipe in RECIPES:
        runs[f"{recipe.__name__}-grouped"] = small_recipes.shrink(recipe(32), SplitBatchNorm(2))
    for recipe in JOINT:
        runs[f"{recipe.__name__}-plain"] = small_recipes.shrink(recipe(32), None)
        runs[f"{recipe.__name__}-joint"] = small_recipes.shrink(recipe(32), BatchNorm())
    for recipe in ACCUMULATED:
        runs[f"{recipe.__name__}-accumulated"] = replace(runs[f"{recipe.__name__}-grouped"], accumulate=2)
    several = (uneven(local_aggregation(32)), uneven(local_aggregation_warmed(32)), two_aggregations())
    for name, run in zip(UNEVEN, several, strict=True):
        runs[f"{name}-uneven"] = run
        runs[f"{name}-uneven-accumulated"] = replace(run, accumulate=2)
    runs["adaptive"] = adaptive(small_recipes.shrink(ring_moco(32), None))
    return runs


def uneven(run: Run) -> Run:
    """The run, made small, where many queries have no positive since few rows are near. If it begins with a branch of
    its own, that counts in the first step only."""
    run = small_recipes.shrink(run, None)
    return replace(run, branches=everywhere(run.branches, _fewer_and_sooner))


def two_aggregations() -> Run:
    """A run of two contrasts, each without positives for other queries."""
    run = uneven(local_aggregation(32))
    other = replace(run.branches[0], memory=StoreOf(0), positives=NearMates(3), weight=Constant(0.4))
    return replace(run, branches=(*run.branches, other))


def _fewer_and_sooner(part: object) -> object:
    match part:
        case NearMates():
            return NearMates(7)
        case ByEpoch():
            return part.course
    return part


def adaptive(run: Any) -> Any:
    """The run with a ring whose share follows the loss, of which each process has only that of its own images."""
    branch = replace(run.branches[0], negatives=(Ring(FollowsLoss(0.9, 0.3, 0.1, 1)),))
    return replace(run, branches=(branch,))


def variants() -> dict[str, Any]:
    """Every variant with BatchNorm in two groups, made small."""
    return {variant.__name__: small_recipes.shrink(variant(32), SplitBatchNorm(2)) for variant in VARIANTS}
