"""The verb `views statistics`: what the channels of one's own images are normalized with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from vantage.cli.arguments import Command, parse
from vantage.cli.console import Console
from vantage.cli.images import opened
from vantage.cli.listing import find_recipe
from vantage.composition.fields import leaves, options
from vantage.data.threads import CORES
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.training.run import Run
    from vantage.views import ColorSpace, Statistics

__all__ = ["view_statistics"]


@dataclass(frozen=True)
class Options:
    """What `views statistics` is told."""

    data: str
    """Folder, list file, .npz/.npy, .parquet, .tar, or torchvision:NAME; `#train` picks a part of it."""

    space: Literal["", "RGB", "Lab", "YDbDr", "YCbCr", "YUV", "YIQ", "HSV", "XYZ"] = ""
    """Color space to measure in; without, that of the recipe, or RGB."""

    images: int = 5_000
    """Images that are read, spread evenly over the set; 0: all."""

    on_bad_image: Literal["skip", "stop"] = "skip"
    """What to do about unreadable images: leave them out (stops above 1 %), or stop at once."""

    workers: int = CORES
    """Threads that look at the images first."""


def view_statistics(words: list[str], console: Console) -> int:
    """Mean and standard deviation of the channels of a data set: vantage views statistics [RECIPE] --data PATH.

    With a recipe, they are measured in its color space, and the words that give them to pretrain are told.
    """
    named = bool(words) and not words[0].startswith("-")
    recipe = find_recipe(words[0], console) if named else None
    command = Command("vantage views statistics", view_statistics.__doc__ or "", {})
    asked = parse(command, options(Options), words[1:] if named else words).values
    run = recipe(224) if recipe is not None else None
    space = _space(asked["space"], run)
    source = opened(asked["data"], asked, console)
    from vantage.progress import progress_for
    from vantage.views.colors.measured import measured_statistics

    progress = progress_for(console.silent)
    progress.start("measuring the images", min(asked["images"] or len(source), len(source)))
    try:
        found = measured_statistics(source, space, asked["images"], progress.advance)
    finally:
        progress.stop()
    mean, std = _numbers(found.mean), _numbers(found.std)
    console.results("", [("color space", type(space).__name__), ("mean", mean), ("std", std)])
    if run is not None:
        console.note(f"give {run.recipe} to pretrain with:")
        console.result(" ".join(_flags(run, found)))
    return 0


def _space(name: str, run: "Run | None") -> "ColorSpace":
    """The color space asked for, or that of the recipe's views; other than the recipe's it is refused."""
    from vantage import views
    from vantage.composition.fitting import parts_of

    own = [part.space for part in parts_of(run.views if run else ()) if isinstance(part, views.InSpace)]
    if name and run is not None and type(own[0] if own else views.RGB()).__name__ != name:
        used = type(own[0]).__name__ if own else "RGB"
        raise UserError(f"--space {name}, but the views of {run.recipe} are in {used}: leave one of the two out")
    chosen: ColorSpace = getattr(views, name)() if name else own[0] if own else views.RGB()
    return chosen


def _flags(run: "Run", found: "Statistics") -> list[str]:
    """What gives the statistics to every normalization of the recipe's views."""
    words = []
    for leaf in leaves(run):
        part, _, field = leaf.path.rpartition(".")
        if part.startswith("views.") and not part.endswith(".statistics") and field in ("mean", "std"):
            words.append(f"--{leaf.path} {_numbers(getattr(found, field))}")
    return words


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.4f}" for value in values)
