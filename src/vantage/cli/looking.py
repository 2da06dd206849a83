"""The verb `views`: a picture of what a recipe makes of images."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vantage.cli.arguments import Command, flags_of, parse, wants_help
from vantage.cli.console import Console
from vantage.cli.images import opened
from vantage.cli.listing import find_recipe
from vantage.cli.results import check_out
from vantage.cli.training import suited
from vantage.cli.view_learning import in_learned_views, learn_views
from vantage.cli.view_statistics import view_statistics
from vantage.composition.fields import Leaf, headings, leaves, options, replaced
from vantage.composition.suggest import did_you_mean
from vantage.data.threads import CORES
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.training.run import Run

__all__ = ["views"]

_VERBS = ["show", "learn", "statistics"]


@dataclass(frozen=True)
class Options:
    """What `views show` is told beside the fields of the views."""

    data: str
    """Folder, list file, .npz/.npy, .parquet, .tar, or torchvision:NAME; `#train` picks a part of it."""

    out: str = "views.png"
    """Picture to write, ending with .png; an older one is replaced."""

    images: int = 6
    """Images shown, spread evenly over the set."""

    times: int = 3
    """How often the views of each are drawn."""

    size: int = 0
    """Side of a view in pixels; 0 chooses 32, 64 or 224 by the short side of the images."""

    seed: int = 0
    """What the views are drawn from."""

    learned: str = ""
    """Folder that `vantage views learn` wrote, or a file in it: the channels are then the learned ones."""

    on_bad_image: Literal["skip", "stop"] = "skip"
    """What to do about unreadable images: leave them out (stops above 1 %), or stop at once."""

    workers: int = CORES
    """Threads that decode images."""


def views(words: list[str], console: Console) -> int:
    """A picture of images and the views that a recipe makes of them: vantage views show RECIPE --data PATH.

    Every field of the views may be given, to see what it does. Views are learned by: vantage views learn METHOD --data
    PATH --out FOLDER. What to normalize with is measured by: vantage views statistics [RECIPE] --data PATH.
    """
    if words[:1] == ["learn"]:
        return learn_views(words[1:], console)
    if words[:1] == ["statistics"]:
        return view_statistics(words[1:], console)
    if wants_help(words) and (len(words) < 3 or words[0] != "show"):
        console.result(inspect.cleandoc(views.__doc__ or ""))
        console.result(
            "\nvantage views show RECIPE --help and vantage views learn METHOD --help tell the fields of one."
        )
        return 0
    if words and words[0] != "show":
        raise UserError(f"views cannot {words[0]!r}{did_you_mean(words[0], _VERBS)} (it can: {', '.join(_VERBS)})")
    if len(words) < 2 or words[1].startswith("-"):
        raise UserError("views needs a recipe: vantage views show RECIPE --data PATH (vantage recipes)")
    return _show(find_recipe(words[1], console), words[2:], console)


def _show(recipe: "Callable[[int], Run]", words: list[str], console: Console) -> int:
    name = f"vantage views show {recipe.__name__}"
    recipe = in_learned_views(recipe, words)
    if wants_help(words):
        parse(_command(name, recipe(224)), (*options(Options), *_fields(recipe(224))), words)
    flags = {flag for size in (224, 64, 32) for leaf in _fields(recipe(size)) for flag in flags_of(leaf)}
    first = parse(Command(name, views.__doc__ or "", {}), options(Options), words, flags).values
    out = check_out(Path(first["out"]), (".png",), "a picture")
    source = opened(first["data"], first, console)
    run = recipe(first["size"] or suited(source, console))
    asked = parse(_command(name, run), (*options(Options), *_fields(run)), words)
    run = replaced(run, {leaf.path: asked.values[leaf.path] for leaf in _fields(run) if leaf.path in asked.asked})
    from vantage.storage.files import result_file
    from vantage.views.show import picture

    count = min(max(0, first["images"]), len(source))
    chosen = [source.image(number * len(source) // count) for number in range(count)]
    drawn = picture(run.views, chosen, first["times"], first["seed"])
    with result_file(out, "the picture") as file:
        drawn.save(file, "PNG")
    console.result(str(out))
    return 0


def _command(name: str, run: "Run") -> Command:
    return Command(name, views.__doc__ or "", {path: words for path, words in headings(run) if path[:5] == "views"})


def _fields(run: "Run") -> tuple[Leaf, ...]:
    """The fields of a run's views."""
    return tuple(leaf for leaf in leaves(run) if leaf.path.startswith("views."))
