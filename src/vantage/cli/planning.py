"""A recipe as options change it: with another backbone, optimizer or values, at a size that suits the images."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

from vantage.cli.console import Console
from vantage.cli.recipes import find_recipe
from vantage.composition.fields import replaced, settings_in
from vantage.composition.fitting import everywhere
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.training.run import Run

__all__ = ["SIZES", "in_learned_views", "overridden", "settable", "suited", "with_named_parts"]

SIZES = ((48, 32), (96, 64))
"""Images with a short side of up to the first number get views of the second, in pixels; larger ones 224."""


def with_named_parts(recipe: "Callable[[int], Run]", size: int, *, backbone: str = "", optimizer: str = "") -> "Run":
    """The recipe with another backbone, whose width the head follows, and with another optimizer and its rate."""
    from vantage.encoders import Encoder, backbone_named, with_backbone
    from vantage.training.optimizers import OPTIMIZERS

    run = recipe(size)
    if backbone:
        chosen = backbone_named(backbone, size)
        encoders = everywhere(
            run.encoders, lambda part: with_backbone(part, chosen) if isinstance(part, Encoder) else part
        )
        run = replace(run, encoders=encoders)
    if optimizer and not isinstance(run.optimizer, OPTIMIZERS[optimizer][0]):
        kind, base = OPTIMIZERS[optimizer]
        own: Any = run.learning_rate
        rate = own.scaled(base * run.batch_size / 256 / own.base)
        run = replace(run, optimizer=kind(), learning_rate=rate)
    return run


def settable(words: list[str]) -> Iterable[str]:
    """The paths that `--set` may change, if the first word is a recipe."""
    from vantage.planning.sizing import quick

    name = next(iter(words), "")
    try:
        recipe = find_recipe(name) if name and not name.startswith("-") else quick
        return [setting.path for setting in settings_in(recipe(224))]
    except UserError:
        return []


def overridden(fitted: "Run", changes: Mapping[str, Any]) -> "Run":
    """A fitted run with the user's values, which take precedence; the learning rate follows batch size and epochs."""
    resized = fitted.resized(changes.get("batch_size"), changes.get("epochs"))
    return replaced(resized if {"batch_size", "epochs"} & set(changes) else fitted, changes)


def suited(size: int | None, source: "Source", console: Console) -> int:
    """The size of views that an option gives, or else the one that suits the images."""
    if size is not None:
        return size
    from vantage.training.feed import usual_size

    side, _ = usual_size(source)
    size = next((chosen for most, chosen in SIZES if side <= most), 224)
    console.note(
        f"the short side of the images is {side} px (median), so views are {size} px wide; --size sets another size"
    )
    return size


def in_learned_views(recipe: "Callable[[int], Run]", folder: str) -> "Callable[[int], Run]":
    """The recipe on the learned views of a folder; the recipe itself if no folder is named.

    Raises `UserError` where the folder has none, or the recipe's views have no color space.
    """
    if not folder:
        return recipe
    from vantage.views.channels import in_space
    from vantage.views.colors.learned import learned_space

    space = learned_space(folder)

    @wraps(recipe)
    def changed(size: int) -> "Run":
        run = recipe(size)
        return replace(run, views=in_space(run.views, space))

    changed(224)
    return changed
