"""`vantage views statistics`: mean and standard deviation of each channel of images."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Command, Word, read
from vantage.cli.reading.options import ImageOptions, ReadingOptions
from vantage.cli.reading.recipe_options import find_recipe
from vantage.composition.fields import leaves
from vantage.composition.fitting import parts_of
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.training.run import Run
    from vantage.views import ColorSpace, Statistics

__all__ = ["statistics"]


@dataclass(frozen=True)
class StatisticsOptions(ImageOptions):
    """The options of `views statistics`."""

    recipe: Annotated[str, Word("RECIPE", positional=True)] = ""
    """Recipe whose color space to measure in; the options that set its statistics are printed too."""

    space: Literal["", "RGB", "Lab", "YDbDr", "YCbCr", "YUV", "YIQ", "HSV", "XYZ"] = ""
    """Color space to measure in: RGB, Lab, YDbDr, YCbCr, YUV, YIQ, HSV or XYZ; if omitted, that of the recipe, or
    RGB."""

    images: int = 5_000
    """Images to read, evenly spaced in the set; 0: all."""


def statistics(words: list[str], console: Console) -> int:
    """Measure the mean and standard deviation of the channels of images: vantage views statistics [RECIPE] --data PATH.

    With a recipe, they are measured in its color space, and the options that set them in pretrain are printed.
    """
    options, reading = read(
        Command("views statistics", statistics.__doc__ or ""), words, StatisticsOptions, ReadingOptions
    )
    run = find_recipe(options.recipe)(224) if options.recipe else None
    space = _space(options.space, run)
    source = reading.open(options.data, console)
    from vantage.progress import task
    from vantage.views.colors.own_statistics import measured_statistics

    progress = console.progress()
    with task(progress, "measuring the images", min(options.images or len(source), len(source))):
        result = measured_statistics(source, space, options.images, progress.advance)
    mean, std = _numbers(result.mean), _numbers(result.std)
    console.results("", [("color space", type(space).__name__), ("mean", mean), ("std", std)])
    if run is not None:
        console.note(f"options for vantage pretrain {run.recipe}:")
        console.result(" ".join(_assignments(run, result)))
    return 0


def _space(name: str, run: "Run | None") -> "ColorSpace":
    """The named color space, or the recipe's. Raises `UserError` if both are given and differ."""
    from vantage import views

    spaces = [part.space for part in parts_of(run.views if run else ()) if isinstance(part, views.InSpace)]
    if name and run is not None and type(spaces[0] if spaces else views.RGB()).__name__ != name:
        name_of_recipe = type(spaces[0]).__name__ if spaces else "RGB"
        raise UserError(f"--space {name}, but the views of {run.recipe} are in {name_of_recipe}: omit one of the two")
    space: ColorSpace = getattr(views, name)() if name else spaces[0] if spaces else views.RGB()
    return space


def _assignments(run: "Run", statistics: "Statistics") -> list[str]:
    """The options that set the statistics of every normalization in the recipe's views: by name, which suits any number
    of views, unless other fields have these names."""
    found = [leaf.path for leaf in leaves(run) if leaf.path.rpartition(".")[2] in ("mean", "std")]
    paths = [path for path in found if path.startswith("views.") and path.split(".")[-2] != "statistics"]
    words = []
    for path in ["mean", "std"] if paths and paths == found else paths:
        numbers = statistics.mean if path.endswith("mean") else statistics.std
        words.append(f"--set {path}={_numbers(numbers, ',')}")
    return words


def _numbers(values: Sequence[float], between: str = " ") -> str:
    return between.join(f"{value:.4f}" for value in values)
