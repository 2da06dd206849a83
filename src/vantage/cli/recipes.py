"""The verb `recipes`: list the recipes, or show one, or a run, in full."""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Command, Word, read
from vantage.cli.reading.recipe_options import find_recipe, run_named
from vantage.composition.fields import settings_in
from vantage.composition.printing import as_python, in_a_line
from vantage.errors import shorten

if TYPE_CHECKING:
    from vantage.training.run import Run

__all__ = ["recipes"]


@dataclass(frozen=True)
class RecipeOptions:
    """The options of `recipes`."""

    name: Annotated[str, Word("NAME|RUN", positional=True)] = ""
    """A recipe, or folder of a run, to show in full; if omitted, all recipes are listed, one on each line."""

    size: int | None = None
    """Side of a view in pixels; up to 96, recipes use their variants for small images. If omitted, 224, or that of the
    run."""


def recipes(words: list[str], console: Console) -> int:
    """List the recipes, or show one in full: vantage recipes [NAME] [--size PIXELS].

    For NAME, the folder of a run shows what the run is made of; parts from your own module need --import.
    """
    (options,) = read(Command("recipes", recipes.__doc__ or ""), words, RecipeOptions)
    if options.name:
        _show(options.name, options.size, console)
        return 0
    from vantage.recipes import RECIPES, VARIANTS

    for paper, group in _by_paper(RECIPES).items():
        for number, recipe in enumerate(group):
            heading = "" if number else paper
            console.result(f"{heading:<13}{recipe.__name__:<29}{_first_line(recipe).rstrip('.')}")
    console.result("\nother published settings:")
    for line in textwrap.wrap(" ".join(recipe.__name__ for recipe in VARIANTS), 100):
        console.result(line)
    console.note("\nvantage recipes NAME shows one in full; vantage pretrain NAME --data PATH trains it")
    return 0


def _by_paper(every: "Iterable[Callable[[int], Run]]") -> "dict[str, list[Callable[[int], Run]]]":
    """The recipes by paper: each module holds the recipes of one paper, and names it first."""
    papers: dict[str, list[Callable[[int], Run]]] = {}
    for recipe in every:
        about = _first_line(inspect.getmodule(recipe)).partition(":")[0]
        papers.setdefault(re.sub(r" \(.*|\..*", "", about), []).append(recipe)
    return papers


def _show(name: str, size: int | None, console: Console) -> None:
    if run := run_named(name, size):
        about = f"The run in {name}."
        fields = (
            "Its fields, with their values (0.3 stands for Constant(0.3)). --set PATH=VALUE may change those of views"
        )
        fields += " in\nvantage views show, and those of hardware, monitoring and data in vantage resume:"
    else:
        size, recipe = 224 if size is None else size, find_recipe(name)
        run, about = recipe(size), inspect.getdoc(recipe) or recipe.__name__
        fields = f"Fields that --set PATH=VALUE may change, with their values at {size} pixels"
        fields += " (0.3 stands for Constant(0.3)):"
    console.result(f"{about}\n\n{as_python(run)}\n\n{fields}\n")
    for setting in settings_in(run):
        if setting.path != "recipe":
            console.result(f"{setting.path}={shorten(in_a_line(setting.value))}\n    {setting.help}")


def _first_line(value: object) -> str:
    """The first paragraph of a docstring, as one line."""
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
