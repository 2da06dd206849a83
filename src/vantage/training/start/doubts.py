"""What is unlikely to be meant in the settings of a run. It is noted before training, and nothing is refused."""

from collections.abc import Iterator

from vantage.branch import Branch, owners
from vantage.composition.fitting import parts_of
from vantage.estimators import JCL
from vantage.memory import ReadsFresh
from vantage.positives import ClusterMate, FixedViews, OtherMate, OtherViews, Remembered
from vantage.schedules import CosineByEpoch, CosineByStep, StepDecay
from vantage.training.run import Run
from vantage.views import RandomResizedCrop

__all__ = ["doubts", "tiny_views"]

_SMALLEST = 8
"""Pixels on a side of views that are not doubted: backbones halve a view three times or more."""


def doubts(run: Run) -> Iterator[str]:
    """A line for each doubt about a run."""
    yield from _unused_views(run)
    yield from tiny_views(run.views)
    if isinstance(run.learning_rate, CosineByEpoch | CosineByStep | StepDecay) and run.learning_rate.base == 0:
        yield "the learning rate is 0, so the networks stay as they are: give one above 0, or none for the recipe's"
    yield from _without_effect(run)
    for number, branch in enumerate(run.branches):
        if isinstance(branch.positives, OtherViews | FixedViews) and branch.query in branch.keys:
            yield (
                f"branch {number} takes view {branch.query} as query and as key, so a query is its own positive: name"
                " other views in Branch.keys"
            )
        if isinstance(branch.estimator, JCL) and _has_one_positive(branch):
            yield (
                f"branch {number} gives each query one positive, so JCL is InfoNCE({branch.estimator.temperature:g}),"
                " whatever its strength: name several views in Branch.keys"
            )


def tiny_views(views: object) -> Iterator[str]:
    """Views of so few pixels that a backbone has a single position of them left."""
    side = min((part.size for part in parts_of(views) if isinstance(part, RandomResizedCrop)), default=_SMALLEST)
    if side < _SMALLEST:
        yield (
            f"views of {side} x {side} pixels show little but colors, since a backbone halves them three times or more:"
            f" give --size {_SMALLEST} or more (crop.size)"
        )


def _unused_views(run: Run) -> Iterator[str]:
    """Views that are made of every image although no branch encodes them."""
    used = {view for branch in run.branches for view in (branch.query, *branch.keys, *branch.pool_views)}
    unused = [str(view) for view in range(run.views.count) if view not in used]
    if unused:
        these = f"{len(unused)} of the {run.views.count} views made of each image ({', '.join(unused)})"
        yield f"no branch uses {these}: name them in Branch.keys, or make fewer views"


def _without_effect(run: Run) -> Iterator[str]:
    """Branches that say what is remembered, although they read what another branch remembers."""
    for number, (branch, owner) in enumerate(zip(run.branches, owners(run.branches), strict=True)):
        other = run.branches[owner]
        own_pool = branch.pool is not None and branch.pool_views != other.pool_views
        if (own_pool or branch.remember != other.remember) and not isinstance(other.memory, ReadsFresh):
            yield (
                f"branch {number} reads what branch {owner} remembers, so its own pool and remember have no effect: set"
                f" those of branch {owner}, or give it a memory"
            )


def _has_one_positive(branch: Branch) -> bool:
    if isinstance(branch.positives, OtherViews | FixedViews):
        return len(branch.keys) == 1
    return isinstance(branch.positives, Remembered | ClusterMate | OtherMate)
