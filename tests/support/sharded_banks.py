"""What each process does for `memory/test_sharded_banks.py`: banks whose rows are sharded, and whole ones."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ranks
import small_recipes
import torch

from vantage import processes
from vantage.branch import Branch
from vantage.composition.fitting import everywhere
from vantage.errors import UserError
from vantage.estimators import NCE
from vantage.memory import Bank, Blocks, ClusteredBank, LabeledBank, ReclusteredBank
from vantage.negatives import Ball, Distinct, Easiest, Hardest, OtherClusters, OtherImages, Ring, Sample, Subset
from vantage.positives import NearMates, Neighbors, OtherMate, Remembered
from vantage.positives.nearest import nearest_rows
from vantage.positives.positives import of_rows
from vantage.recipes import RECIPES, instance_discrimination, local_aggregation
from vantage.records import Keys, Pool, Scores
from vantage.schedules import Constant
from vantage.training.run import Run

_WIDE = Ring(Constant(0.7), Constant(0.3))
BANKS = (Bank, ClusteredBank, ReclusteredBank, LabeledBank)


def with_sharded_bank(run: Run) -> Run:
    """The run with sharded banks."""
    return everywhere(run, lambda part: replace(part, sharded=True) if isinstance(part, BANKS) else part)


def cases() -> dict[str, Run]:
    """Every recipe that has a bank, made small, and combinations that no recipe has."""
    runs = {recipe.__name__: small_recipes.shrink(recipe(32), None) for recipe in RECIPES}
    own = small_recipes.shrink(instance_discrimination(32), None)
    (bank,) = own.branches
    (near,) = small_recipes.shrink(local_aggregation(32), None).branches
    others: dict[str, Branch] = {
        "subset, draw": replace(bank, negatives=(Subset(9), Sample(6))),
        "few of a subset": replace(bank, negatives=(Subset(2), Sample(6))),
        "few, by themselves": replace(bank, negatives=(Subset(2), Sample(6)), estimator=NCE(0.1)),
        "ring, draw, by themselves": replace(bank, negatives=(_WIDE, Sample(5)), estimator=NCE(0.1)),
        "distinct": replace(bank, negatives=(OtherImages(), Ball(), Distinct(3))),
        "easiest": replace(near, positives=OtherMate(), negatives=(OtherClusters(), Easiest(), Distinct(2))),
        "draw, ring": replace(bank, negatives=(Sample(11), Hardest())),
        "no neighbors": replace(bank, positives=Neighbors(ring=Ring())),
        "neighbors": replace(bank, positives=Neighbors(ring=_WIDE), negatives=(_WIDE,)),
        "a user's rule": replace(bank, negatives=(OtherImages(), _NotTooNear())),
        "a user's positives": replace(bank, positives=_NearImages()),
        "labels": replace(
            near, memory=LabeledBank(labels=Blocks(5)), positives=OtherMate(), negatives=(OtherClusters(),)
        ),
        "all near": replace(near, positives=NearMates(24)),
    }
    branch_runs = {name: replace(own, branches=(branch,)) for name, branch in others.items()}
    return {name: run for name, run in {**runs, **branch_runs}.items() if with_sharded_bank(run) != run}


def train(run: Run) -> dict[str, Any]:
    """`ranks.train` for a run with sharded banks, which start from the same rows as whole ones."""
    return ranks.train(run, wrap=processes.count() > 1)


def every_case(folder: Path) -> None:
    """Train all cases with sharded banks on this process; only the first process saves its state."""
    results = {name: train(with_sharded_bank(run)) for name, run in cases().items()}
    if processes.rank():
        for result in results.values():
            del result["state"]
    torch.save(results | {"held": rows_held(), "refused": assert_refused()}, folder / f"{processes.rank()}.pt")


def rows_held() -> list[int]:
    """The rows, out of 10, that this process holds."""
    store = Bank(sharded=True).build(10, 3)
    return store.image.tolist()


def assert_refused() -> list[str]:
    """The messages for parts that need a whole bank."""
    words = []
    run = with_sharded_bank(small_recipes.shrink(instance_discrimination(32), None))
    (branch,) = run.branches
    for other in (
        replace(branch, negatives=(OtherImages(),), estimator=NCE(0.1)),
        replace(branch, negatives=(_Own(),)),
        replace(branch, positives=_First()),
    ):
        learner = small_recipes.learner(replace(run, branches=(other,)))
        views, image = small_recipes.batches(1, small_recipes.shapes(run))[0]
        try:
            learner([processes.own_rows(view) for view in views], processes.own_rows(image), 0)
            words.append("")
        except UserError as problem:
            words.append(str(problem))
    return words


@dataclass(frozen=True)
class _NotTooNear:
    """A user's own rule that works on shards: `extend/negative_sampler.md` has it."""

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """Pairs below a ceiling."""
        return scores.only(scores.cosine.detach() <= 0.2)

    def on_shard(self, scores: Scores, query: Keys, first: int, step: int) -> Scores:
        """The same, which needs no other rows."""
        return scores.only(scores.cosine.detach() <= 0.2)


@dataclass(frozen=True)
class _NearImages:
    """A user's own positives that work on shards: `extend/positive_rule.md` has them."""

    def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Pool, step: int) -> Scores:
        """The own row, and those of the nearest rows that are near enough."""
        own = Remembered()(query, keys, pool, step)
        row = nearest_rows(query, pool, 4)
        near = of_rows(query, pool, row)
        near = near.only((near.cosine.detach() >= 0.2) & (row != own.key))
        both = ((own.cosine, near.cosine), (own.key, near.key), (own.keep, near.keep))
        return Scores(*(torch.cat(pair, dim=1) for pair in both))


class _Own:
    """A user's own rule that does not."""

    def __call__(self, scores: Any, query: Any, pool: Any, step: int) -> Any:
        """All."""
        return scores


class _First:
    """A user's own positives."""

    def __call__(self, query: Any, keys: Any, pool: Any, step: int) -> Any:
        """The first row."""
        return pool.vector[:1]
