"""`vantage views show`: a picture of images and the views that a recipe or a run makes of them."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Command, Repeated, Word, read
from vantage.cli.reading.options import ReadingOptions, ViewOptions
from vantage.cli.reading.out_files import check_file
from vantage.cli.reading.recipe_options import find_recipe, run_named, settable, view_size, with_learned_views
from vantage.composition.assignments import assign
from vantage.storage.files import result_file

if TYPE_CHECKING:
    from vantage.training.run import Run

__all__ = ["show"]


@dataclass(frozen=True)
class ShowOptions(ViewOptions):
    """The options of `views show`."""

    recipe: Annotated[str, Word("RECIPE|RUN", positional=True)]
    """Recipe whose views to show (one that `vantage recipes` lists, or MODULE:NAME of your own), or folder of a run."""

    out: Annotated[str, Word("FILE")] = "views.png"
    """File for the picture, ending with .png; an existing one is replaced."""

    images: int = 6
    """Images in the picture, evenly spaced in the set."""

    times: int = 3
    """How many times to draw the views of each image."""

    seed: int = 0
    """Seed of the views."""

    learned: Annotated[str, Word("FOLDER")] = ""
    """Folder written by `vantage views learn`, or a file in it: the channels for a recipe that splits by channel."""

    set: Repeated = ()
    """Any field or part of the views: --set crop.scale=0.5,1. May be repeated."""


def show(words: list[str], console: Console) -> int:
    """Draw images and the views that a recipe makes of them: vantage views show RECIPE --data PATH.

    For RECIPE, the folder of a run shows its views, at their own size if --size is omitted; parts from your own module
    need --import. vantage recipes RECIPE lists the paths that --set may change; here, only those of the views apply.
    """
    command = Command("views show", show.__doc__ or "", partial(settable, words))
    options, reading = read(command, words, ShowOptions, ReadingOptions)
    from vantage.views.show import picture

    stored_run = run_named(options.recipe, options.size)
    chosen = (lambda _: stored_run) if stored_run else find_recipe(options.recipe)
    recipe = with_learned_views(chosen, options.learned, console)
    out = check_file(Path(options.out), (".png",), "a picture")
    name = options.recipe if stored_run else recipe.__name__

    def run_at(size: int) -> "Run":
        return assign(recipe(size), options.set, may_set=lambda path: path.startswith("views"), name=name)

    size = stored_run.views.evaluation(0).size if stored_run else options.size
    if size is not None:
        run_at(size)  # report a mistake before the images are read
    source = reading.open(options.data, console)
    run = run_at(view_size(size, source, console))
    count = min(max(0, options.images), len(source))
    images = [source.image(number * len(source) // count) for number in range(count)]
    drawing = picture(run.views, images, options.times, options.seed)
    with result_file(out, "the picture") as file:
        drawing.save(file, "PNG")
    console.result(str(out))
    return 0
