"""Summarize a run in a few lines."""

from dataclasses import is_dataclass
from typing import Any

from vantage.branch import Branch
from vantage.composition.printing import in_a_line
from vantage.training.run import Run

__all__ = ["short", "summary"]


def summary(run: Run, images: int | None = None) -> list[tuple[str, str]]:
    """The parts of a run as (name, description); with the number of images, also its length."""
    rows = [("recipe", run.recipe), ("views", _views(run)), ("encoder", short(run.encoders))]
    several = len(run.branches) > 1
    rows += [(f"branch {n}" if several else "branch", _branch(branch)) for n, branch in enumerate(run.branches)]
    rows += [("optimizer", short(run.optimizer)), ("learning rate", short(run.learning_rate))]
    parts = f", in {run.accumulate} parts" if run.accumulate > 1 else ""
    rows += [("batch", f"{run.batch_size:,} images{parts}"), ("epochs", f"{run.epochs:,}")]
    if images is not None:
        steps = max(1, run.steps_per_epoch(images))
        rows += [("images", f"{images:,} from {run.data.path}")]
        rows += [("steps", f"{steps:,} in an epoch, {steps * run.epochs:,} in all")]
    many = run.hardware.processes
    rows += [("hardware", f"{run.hardware.accelerator}{f' × {many}' if many > 1 else ''}, {run.hardware.precision}")]
    return rows


def short(value: Any) -> str:
    """A part or a number in one line; a tuple of equal parts is shown as a count and one of them."""
    if isinstance(value, tuple) and len(value) > 1 and is_dataclass(value[0]) and len(set(value)) == 1:
        return f"{len(value)} × {in_a_line(value[0])}"
    if type(value) is int:
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else in_a_line(value) if not isinstance(value, str) else value


def _branch(branch: Branch) -> str:
    rules = " then ".join(map(short, branch.negatives)) or "all negatives"
    weight = (
        "" if branch.weight == Branch.__dataclass_fields__["weight"].default else f" · weight {short(branch.weight)}"
    )
    keys = f"view {', '.join(map(str, branch.keys))}" if branch.keys else "memory"
    parts = (short(branch.memory), short(branch.positives), rules, short(branch.estimator))
    return f"{' · '.join(parts)}{weight} · query view {branch.query}, key {keys}"


def _views(run: Run) -> str:
    views = getattr(run.views, "views", None)
    if not isinstance(views, tuple) or not all(hasattr(view, "operations") and hasattr(view, "crop") for view in views):
        return f"{run.views.count}: {short(run.views)}"
    rows = [" → ".join(map(short, (view.crop, *view.operations))) for view in views]
    if len(set(rows)) == 1:
        return f"{len(rows)} × {rows[0]}"
    return "; ".join(f"{number}: {row}" for number, row in enumerate(rows))
