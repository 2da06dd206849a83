"""What is unlikely to be meant in the settings of a run. It is noted before training, and nothing is refused."""

from collections.abc import Iterator

from vantage.training.run import Run

__all__ = ["doubts"]


def doubts(run: Run) -> Iterator[str]:
    """A line for each doubt about a run."""
    yield from _unused_views(run)


def _unused_views(run: Run) -> Iterator[str]:
    """Views that are made of every image although no branch encodes them."""
    used = {view for branch in run.branches for view in (branch.query, *branch.keys, *branch.pool_views)}
    unused = [str(view) for view in range(run.views.count) if view not in used]
    if unused:
        yield (
            f"no branch uses {len(unused)} of the {run.views.count} views made of each image ({', '.join(unused)}): name"
            " them in Branch.keys, or make fewer views"
        )
