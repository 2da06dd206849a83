"""Recipes of a user's own: functions of modules that the user names."""

from collections.abc import Callable
from functools import wraps
from inspect import isfunction, signature
from typing import TYPE_CHECKING, Any, cast

from vantage.composition.codec import allowed_names, allowed_object
from vantage.errors import UserError, naming

if TYPE_CHECKING:
    from vantage.training.run import Run

__all__ = ["own_recipe", "suggested"]


def own_recipe(module: str, name: str) -> "Callable[[int], Run]":
    """The recipe MODULE:NAME. Raises `UserError` if it is none; so does the recipe, of whatever it raises itself."""
    from vantage.training.run import Run

    function = allowed_object(module, name, "recipe")
    if not _takes_a_size(function):
        raise _no_recipe(module, name)

    def recipe(size: int) -> "Run":
        with naming(f"the recipe {module}:{name} at {size} pixels"):
            run = function(size)
        if not isinstance(run, Run):
            raise _no_recipe(module, name)
        return run

    recipe(224)
    return wraps(function)(recipe)


def suggested(name: str) -> str:
    """How to write the recipe that was probably meant, as the end of a message; empty if there is no such function."""
    file, ends, function = name.partition(".py:")
    if ends and function:
        module = file.rpartition("/")[2]
        return f"; write the name of the module, in its folder: {module}:{function} --import {module}"
    own = allowed_names(isfunction).get(name)
    return f"; did you mean {own}?" if own else ""


def _takes_a_size(function: object) -> bool:
    """Whether something can be called with one argument, as far as can be known without a call."""
    try:
        signature(cast("Callable[..., Any]", function)).bind(224)
    except TypeError:  # also if it is no function
        return False
    except ValueError:  # it does not say what it takes
        return callable(function)
    return True


def _no_recipe(module: str, name: str) -> UserError:
    return UserError(f"{module}:{name} is not a recipe: a recipe takes the size of the views and returns a Run")
