"""Which recipes there are, and how one is found by name."""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from vantage.cli.arguments import Command, parse
from vantage.cli.console import Console
from vantage.composition.fields import options
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.training.run import Run

__all__ = ["find_recipe", "first_line", "recipes"]


@dataclass(frozen=True)
class Options:
    """What `recipes` is told."""

    name: str = ""
    """A recipe to tell all about; all recipes in a line each, if none is named."""

    size: int = 224
    """Side of a view in pixels; up to 96 there are variants for small images."""


def recipes(words: list[str], console: Console) -> int:
    """List the recipes, or tell all about one: vantage recipes [NAME] [--size PIXELS]."""
    command = Command("vantage recipes", recipes.__doc__ or "", {})
    asked = parse(command, options(Options, ("name",)), words).values
    if asked["name"]:
        from vantage.cli.summary import summary

        recipe = find_recipe(asked["name"], console)
        console.result(inspect.getdoc(recipe) or recipe.__name__)
        console.results(f"\nat {asked['size']} pixels", summary(recipe(asked["size"])))
        return 0
    from vantage.recipes import RECIPES

    console.results("", [(recipe.__name__, first_line(recipe)) for recipe in RECIPES])
    return 0


def find_recipe(name: str, console: Console) -> "Callable[[int], Run]":
    """The recipe of a name, or the function FUNCTION of an imported module for MODULE:FUNCTION."""
    from vantage.recipes import RECIPES
    from vantage.training.run import Run

    module, colon, function = name.partition(":")
    if colon:
        if module not in console.imports:
            raise UserError(f"the recipe {name} is of a module of your own: allow it with --import {module}")
        found: Any = getattr(sys.modules[module], function, None)
        if not callable(found):
            near = did_you_mean(function, [n for n, v in vars(sys.modules[module]).items() if callable(v)])
            raise UserError(f"the module {module} has no function {function!r}{near}")
        if not isinstance(found(224), Run):
            raise UserError(f"{name} is no recipe: it must take the size of the views and return a Run")
        return cast("Callable[[int], Run]", found)
    known = {recipe.__name__: recipe for recipe in RECIPES}
    plain = name.replace("-", "_").lower()
    if plain not in known:
        raise UserError(f"there is no recipe {name!r}{did_you_mean(plain, known)} (recipes: {', '.join(known)})")
    return known[plain]


def first_line(told: object) -> str:
    """The first paragraph of the text of a recipe, or of another part, as one line."""
    return " ".join((inspect.getdoc(told) or "").partition("\n\n")[0].split())
