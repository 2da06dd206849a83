"""The published methods, one module for each paper, each method a composition of parts.

A recipe is a function of the image size that returns a `Run` with the paper's values; below 97 pixels it is a
documented variant for small images. `Run.fit` adapts it to a data set. Other settings that were published are functions
too, in the module of their recipe (`VARIANTS`); `dataclasses.replace` makes any other variant.

To add a recipe, write one function in a file of its own, one line in `methods.py` (or `variants.py`), and its paper's
values as one row in `tests/recipes/test_published.py`.
"""

from collections.abc import Callable

from vantage.recipes import methods, variants
from vantage.recipes.methods import *  # noqa: F403
from vantage.recipes.multi_crop import with_small_crops as with_small_crops
from vantage.recipes.variants import *  # noqa: F403
from vantage.training.run import Run

__all__ = ["RECIPES", "VARIANTS", "with_small_crops", *methods.__all__, *variants.__all__]  # pyright: ignore

RECIPES: tuple[Callable[[int], Run], ...] = tuple(getattr(methods, name) for name in methods.__all__)
"""Every recipe that is a method of its own, for the command line and the tests."""

VARIANTS: tuple[Callable[[int], Run], ...] = tuple(getattr(variants, name) for name in variants.__all__)
"""Other settings that were published, for the command line and the tests."""
