"""What a run of several contrasts reports of each: how many losses are kept, and the lines after an epoch."""

import textwrap
from collections.abc import Mapping
from dataclasses import replace

from vantage.branch import Branch
from vantage.encoders import PerView
from vantage.learner import Learner
from vantage.training.run import Run
from vantage.training.watching.monitor import Monitor

__all__ = ["epoch_lines", "kept_losses", "monitor_of"]

_COLUMNS, _SHOWN = 80, 4


def kept_losses(run: Run) -> int:
    """How many branches have losses worth keeping: all of them, or none if the first is the whole story. That is so of
    a single branch, and of one that only swaps its views, such as SimCLR's two directions."""
    first, *others = run.branches
    if all(_swaps(first, other) for other in others) and not isinstance(run.encoders, PerView):
        return 0
    return len(run.branches) if others else 0


def monitor_of(run: Run, learner: Learner) -> Monitor:
    """An empty monitor, which watches each branch with queries of its own; where the first is the whole story, only
    that one."""
    kept = kept_losses(run)
    return Monitor(learner.networks.width, kept, learner.watched[1:] if kept else ())


def _swaps(one: Branch, other: Branch) -> bool:
    """Whether two branches have equal parts and the same views, but perhaps query with another one."""
    same_views = {one.query, *one.keys} == {other.query, *other.keys} and set(one.pool_views) == set(other.pool_views)
    return same_views and replace(other, query=one.query, keys=one.keys, pool=one.pool) == one


def epoch_lines(epoch: int, numbers: Mapping[str, float]) -> list[str]:
    """The numbers of an epoch (`Monitor.read`), in lines of at most 80 columns. Where losses of branches are among
    them, the other numbers are said to be of the first branch; of many losses, the least and the largest are shown."""
    loss = f"epoch {epoch}: loss {numbers['loss']:.3f}"
    rest = (
        f"accuracy {numbers['accuracy']:.0%}, alignment {numbers['alignment']:.2f},"
        f" uniformity {numbers['uniformity']:.2f}, rank {numbers['rank']:.0f}"
    )
    losses = [value for name, value in numbers.items() if name.startswith("loss.")]
    if not losses:
        return [f"{loss}, {rest}"]
    words = f"branches, unweighted: {', '.join(f'{value:.3f}' for value in losses)}"
    if len(losses) > _SHOWN:
        words = f"{len(losses)} branches, unweighted: {min(losses):.3f} to {max(losses):.3f}"
    text = f"{loss} ({words})"
    return [*textwrap.wrap(text, _COLUMNS, subsequent_indent="  "), f"  branch 0: {rest}"]
