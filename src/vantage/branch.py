"""One contrast: a memory, what is positive, what is negative, and what compares them.

b: queries
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from vantage import processes
from vantage.composition.public import name_wrong_types
from vantage.errors import UserError
from vantage.estimators import Estimator, EstimatorChoice, TableEstimator
from vantage.memory import Memory, StoreOf
from vantage.memory.remember import EachKey, Remember
from vantage.negatives import Rule
from vantage.partition import scores_of_negatives, sum_negatives
from vantage.positives import Positives
from vantage.records import Keys, Pool, Scores
from vantage.schedules import Constant, Schedule

__all__ = ["Branch", "BranchLoss", "owners", "views_needed"]


class BranchLoss(NamedTuple):
    """The result of a branch on one batch."""

    loss: Float[Tensor, ""]
    """Sum over this process's queries that have a positive, divided by the mean number of such queries per process.
    DDP's mean of the gradients is then the gradient of the mean loss of the joint batch."""

    positive: Scores
    """Cosines of the queries with their positives."""

    share: Float[Tensor, ""]
    """Share of the queries of all processes that have a positive."""


@name_wrong_types
@dataclass(frozen=True)
class Branch:
    """One contrast: one view gives the queries, other views give the keys, and some keys are remembered."""

    memory: Memory | StoreOf
    """Which keys are remembered between steps; `StoreOf(n)` reads what branch n remembers."""

    positives: Positives
    """Which keys are positives."""

    negatives: tuple[Rule, ...]
    """Rules that select the negatives from the pool, applied left to right; without rules, the whole pool."""

    estimator: Estimator | TableEstimator | EstimatorChoice
    """What compares positives with negatives."""

    weight: Schedule = Constant(1.0)
    """Weight of this branch in the sum of the losses, by step."""

    query: int = 0
    """Number of the view that gives the queries."""

    keys: tuple[int, ...] = (1,)
    """Numbers of the views that give the keys."""

    pool: tuple[int, ...] | None = None
    """Numbers of the views whose keys are remembered (or, without memory, compared with). `None` means the views of
    `keys`, so that both change together."""

    remember: Remember = EachKey()
    """What is remembered if there are several such views: each key, or one mean for each image (JCL)."""

    def __post_init__(self) -> None:
        if not isinstance(self.negatives, tuple):
            found = type(self.negatives).__name__
            raise UserError(f"Branch.negatives: expected a tuple of rules, found {found}; write one rule as (rule,)")
        if not self.pool_views:
            raise UserError("a branch with no view in Branch.pool has nothing to compare with: name at least one view")
        if min(self.query, *self.keys, *self.pool_views) < 0:
            raise UserError("views are numbered from 0: Branch.query, keys and pool must not be negative")

    @property
    def views(self) -> int:
        """How many views this branch needs."""
        return 1 + max(self.query, *self.keys, *self.pool_views)

    @property
    def pool_views(self) -> tuple[int, ...]:
        """Numbers of the views whose keys are remembered: `pool`, or `keys` if `pool` is omitted."""
        return self.keys if self.pool is None else self.pool

    def contrast(
        self, query: Keys, keys: tuple[Keys, ...], pool: Pool, step: int, state: TableEstimator | None = None
    ) -> BranchLoss:
        """The loss of these queries against the pool. `state` is the estimator that an `EstimatorChoice` built; without
        it, such a choice raises `UserError`, and so does an estimator that gives anything but one loss for each query.

        If the pool has clusters, each query gets those of its image. Similarities keep the precision of the vectors,
        also under autocast.
        """
        query = with_clusters(query, pool)
        estimator = self.estimator if state is None else state
        with torch.autocast(query.vector.device.type, enabled=False):
            positive = self.positives(query, keys, pool, step)
            match estimator:
                case TableEstimator():
                    losses = estimator(positive, scores_of_negatives(query, pool, self.negatives, step), step)
                case EstimatorChoice():
                    words = "keeps state: hand Branch.contrast what its build() made"
                    raise UserError(f"{type(estimator).__name__} {words}")
                case Estimator():
                    negatives = sum_negatives(query, pool, self.negatives, estimator.temperature, step)
                    losses = estimator(positive, negatives, step)
            shape = getattr(losses, "shape", None)  # a user's own may return nothing
            if shape != positive.keep.shape[:1]:  # a column of losses would spread over all queries
                found = f"a {type(losses).__name__}" if shape is None else f"losses of shape {tuple(shape)}"
                words = f"gives {found} for {len(positive.keep)} queries: give one for each query"
                raise UserError(f"{type(estimator).__name__} {words}")
            return _mean(losses, positive)


def with_clusters(query: Keys, pool: Pool) -> Keys:
    """The queries with the clusters of their images, if the pool has any. Raises `UserError` for a pool that keeps no
    row for each image."""
    if pool.cluster is None or query.cluster is not None:
        return query
    words = "a query's cluster is looked up by its image, but the memory keeps no row for each image: use a bank"
    return replace(query, cluster=pool.cluster[pool.row_of(query, words)])


def _mean(losses: Float[Tensor, "b"], positive: Scores) -> BranchLoss:
    """The losses of queries with a positive, reduced as `BranchLoss.loss` says."""
    has_positive, world_size = positive.keep.any(1), processes.count()
    count = processes.total(has_positive.sum())
    loss = torch.where(has_positive, losses, 0.0).sum() / (count / world_size).clamp(min=1.0 / world_size)
    return BranchLoss(loss, positive, count.to(losses.dtype) / (world_size * len(losses)))


def views_needed(branches: tuple[Branch, ...]) -> int:
    """How many views a step needs. Raises `UserError` if there are no branches."""
    if not branches:
        raise UserError("a run without branches has nothing to learn: give at least one Branch")
    return max(branch.views for branch in branches)


def owners(branches: tuple[Branch, ...]) -> list[int]:
    """For each branch, the number of the branch whose store it reads: its own number, unless its memory is `StoreOf`.

    Raises `UserError` unless `StoreOf` names an earlier branch with a memory of its own.
    """
    numbers: list[int] = []
    for number, branch in enumerate(branches):
        if not isinstance(branch.memory, StoreOf):
            numbers.append(number)
            continue
        other = branch.memory.branch
        if other >= number or isinstance(branches[other].memory, StoreOf):
            raise UserError(
                f"branch {number} reads the store of branch {other}, which must be an earlier one with a memory of its "
                "own: name such a branch"
            )
        numbers.append(other)
    return numbers
