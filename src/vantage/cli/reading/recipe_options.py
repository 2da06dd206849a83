"""Find a recipe by its name, and change it by options: another backbone, other values, a size that suits the images."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from inspect import signature
from shlex import quote
from typing import TYPE_CHECKING, cast

from vantage.cli.printing.console import Console
from vantage.composition.codec import allowed_object
from vantage.composition.fields import settings_in
from vantage.composition.names import external_part
from vantage.composition.suggest import no_such
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.training.run import Run

__all__ = ["find_recipe", "note_statistics", "with_learned_views", "settable", "view_size", "with_named_parts"]


def find_recipe(name: str) -> "Callable[[int], Run]":
    """The recipe of this name; for MODULE:FUNCTION, that function in an imported module."""
    from vantage.recipes import RECIPES, VARIANTS
    from vantage.training.run import Run

    if own := external_part(name):
        function = allowed_object(*own, "recipe")
        if not callable(function) or not isinstance(function(224), Run):
            raise UserError(f"{name} is not a recipe: a recipe takes the size of the views and returns a Run")
        return cast("Callable[[int], Run]", function)
    recipes_by_name = {recipe.__name__: recipe for recipe in (*RECIPES, *VARIANTS)}
    plain = name.replace("-", "_").lower()
    if plain not in recipes_by_name:
        raise no_such("recipe", plain, recipes_by_name)
    return recipes_by_name[plain]


def with_named_parts(recipe: "Callable[[int], Run]", size: int, *, backbone: str = "", optimizer: str = "") -> "Run":
    """The recipe with another backbone, to which the head is adapted, and another optimizer with its learning rate.

    Raises `UserError` if there is no such backbone, or if the recipe's learning rate has no `base` above 0 to scale.
    """
    from vantage.encoders import backbone_named
    from vantage.planning.sizing import with_network
    from vantage.training.optimizers import OPTIMIZERS

    run = recipe(size)
    if backbone:
        run = with_network(run, backbone_named(backbone, size))
    if optimizer and not isinstance(run.optimizer, OPTIMIZERS[optimizer][0]):
        kind, base = OPTIMIZERS[optimizer]
        rate = run.learning_rate
        if not (old_base := getattr(rate, "base", 0)):
            raise UserError(
                f"--optimizer {optimizer} scales the recipe's learning rate, but {type(rate).__name__} has no base"
                f" above 0: replace the option by --set 'optimizer={kind.__name__}()' --set"
                f" learning_rate='CosineByStep({base:g})', which suits a batch of 256"
            )
        run = replace(run, optimizer=kind(), learning_rate=rate.scale(base * run.batch_size / 256 / old_base))
    return run


def settable(words: list[str]) -> Iterable[str]:
    """The paths that `--set` may change, if the first word is a recipe."""
    from vantage.planning.sizing import default_recipe

    name = next(iter(words), "")
    try:
        recipe = find_recipe(name) if name and not name.startswith("-") else default_recipe
        return [setting.path for setting in settings_in(recipe(224))]
    except UserError:
        return []


def note_statistics(recipe: "Callable[[int], Run]", run: "Run", console: Console) -> None:
    """Note how to normalize by the images' own statistics, if small views use ImageNet's and the recipe allows it."""
    from vantage.composition.fitting import parts_of
    from vantage.views import IMAGENET

    takes_them = "statistics" in signature(recipe).parameters and run.views.evaluation(0).size < 224
    if takes_them and IMAGENET.normalize() in parts_of(run.views):
        console.note(
            "views are normalized by ImageNet's mean and deviation; for those of your images: vantage views statistics"
            f" {run.recipe} --data {quote(run.data.path)}"
        )


def view_size(size: int | None, source: "Source", console: Console) -> int:
    """The view size given by an option, or else the one that suits the images."""
    if size is not None:
        return size
    from vantage.planning.ladder import suitable_size
    from vantage.training.images import usual_size

    side, _ = usual_size(source)
    size = suitable_size(side)
    console.note(
        f"the short side of the images is {side} px (median), so views are {size} px wide; --size sets another size"
    )
    return size


def with_learned_views(recipe: "Callable[[int], Run]", folder: str) -> "Callable[[int], Run]":
    """The recipe with the learned views in a folder, or the unchanged recipe if no folder is named.

    Raises `UserError` if the folder holds none, or if the recipe's views have no color space.
    """
    if not folder:
        return recipe
    from vantage.views.channels import in_space
    from vantage.views.colors.learned import learned_space

    space = learned_space(folder)

    @wraps(recipe)
    def in_learned_space(size: int) -> "Run":
        run = recipe(size)
        return replace(run, views=in_space(run.views, space))

    in_learned_space(224)
    return in_learned_space
