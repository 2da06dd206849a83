"""Describe a planned run in words."""

from vantage.composition.fitting import parts_of
from vantage.composition.printing import in_a_line, with_first_field
from vantage.encoders import Encoder
from vantage.training.backbone import evaluation_view
from vantage.training.run import Run
from vantage.views.operations.crops import RandomResizedCrop
from vantage.views.operations.flip import HorizontalFlip

__all__ = ["choices", "describe_networks", "view_sides"]


def choices(run: Run) -> list[tuple[str, str]]:
    """Network and method of a planned run, each with its heading."""
    base = getattr(run.learning_rate, "base", None)
    optimizer = f"{type(run.optimizer).__name__}{f' at {base:.2g}' if base else ''}"
    views = f"views of {view_sides(run)} px{_small_views(run)}{_never_mirrored(run)}"
    return [
        ("network", f"{describe_networks(run)}, {views}"),
        ("method", f"{run.recipe}, batch {run.batch_size:,}, {optimizer}"),
    ]


def _small_views(run: Run) -> str:
    """The small views that each image has besides, if any."""
    sides = [part.size for part in parts_of(run.views) if isinstance(part, RandomResizedCrop)]
    small = [side for side in sides if side < _pixels(run)]
    return f", and {len(small)} of {small[0]} px" if small else ""


def _never_mirrored(run: Run) -> str:
    """A note if the views' flips are turned off."""
    flips = [part.probability for part in parts_of(run.views) if isinstance(part, HorizontalFlip)]
    return ", never mirrored" if flips and not any(flips) else ""


def describe_networks(run: Run) -> str:
    """The backbones of a run, in words."""
    each = [with_first_field(part.backbone) for part in parts_of(run.encoders) if isinstance(part, Encoder)]
    return " and ".join(dict.fromkeys(each)) or in_a_line(run.encoders)


def view_sides(run: Run) -> str:
    """The sides of a run's views in pixels, from the first epoch to the last: 16 → 24 → 32."""
    sides = run.resizing.sides if run.resizing else ()
    return " → ".join(map(str, (*sides, _pixels(run))))


def _pixels(run: Run) -> int:
    return evaluation_view(run, 0).size
