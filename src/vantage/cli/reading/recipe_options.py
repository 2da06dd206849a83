"""Find a recipe by its name, or the run in a folder, and change it by options: another backbone, other values, a size
that suits the images."""

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from inspect import signature
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, TypeVar

from vantage.cli.printing.console import Console
from vantage.cli.reading.own_recipes import own_recipe, suggested
from vantage.composition.fields import settings_in
from vantage.composition.names import external_part
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.training.run import Run

__all__ = [
    "at_some_size",
    "find_recipe",
    "for_one_of",
    "named_part_paths",
    "note_statistics",
    "refuse_replaced",
    "run_named",
    "settable",
    "view_size",
    "with_learned_views",
    "with_named_parts",
]

T = TypeVar("T")


def find_recipe(name: str) -> "Callable[[int], Run]":
    """The recipe of this name; for MODULE:FUNCTION, that function in an imported module."""
    from vantage.training.folder.settings import FILE

    if (own := external_part(name)) and ".py:" not in name:
        return own_recipe(*own)
    recipes_by_name, plain = _recipes_by_name(), _plain(name)
    if plain in recipes_by_name:
        return recipes_by_name[plain]
    if os.path.lexists(Path(name, FILE)):
        folder = quote(name)
        raise UserError(
            f"{name} is a run, not a recipe: its values are fitted to its images. vantage pretrain RECIPE --init"
            f" {folder} starts from what it learned; vantage recipes {folder} prints its composition, for a recipe of"
            " your own"
        )
    hint = suggested(name) or did_you_mean(plain, recipes_by_name)
    raise UserError(f"there is no recipe {name!r}{hint} (vantage recipes lists them all)")


def run_named(name: str, size: int | None) -> "Run | None":
    """The run in the folder of this name, with views of its own size or, if given, of `size` pixels; `None` if the name
    is not that of a folder. A recipe's name means the recipe, even if there is such a folder.

    Raises `UserError` if a path holds no run, or if its views cannot be made at this size.
    """
    from vantage.training.folder import settings

    is_path = os.sep in name and ".py:" not in name or os.path.lexists(Path(name, settings.FILE))
    if not is_path or _plain(name) in _recipes_by_name():
        return None
    run = settings.read(Path(name))
    return run if size is None else _at_size(run, size, name)


def _at_size(run: "Run", size: int, name: str) -> "Run":
    """The run with views of `size` pixels, made as a run makes views that have not grown yet."""
    from vantage.views import ProgressiveResizing

    own = run.views.evaluation(0).size
    if size == own:
        return run
    views = ProgressiveResizing((size,), (1.0,)).maker(run.views, 0.0) if 0 < size < own else run.views
    if views.evaluation(0).size != size:
        raise UserError(
            f"the views of {name} are {own} px wide, and cannot be made {size} px wide: views of a run can only be made"
            " smaller, if none of their operations has lengths in pixels; omit --size"
        )
    return replace(run, views=views)


def _recipes_by_name() -> "dict[str, Callable[[int], Run]]":
    from vantage.recipes import RECIPES, VARIANTS

    return {recipe.__name__: recipe for recipe in (*RECIPES, *VARIANTS)}


def _plain(name: str) -> str:
    return name.replace("-", "_").lower()


def with_named_parts(recipe: "Callable[[int], Run]", size: int, *, backbone: str = "", optimizer: str = "") -> "Run":
    """The recipe with another backbone, to which the head is adapted, and another optimizer.

    Raises `UserError` if there is no such backbone or optimizer, or if the learning rate has no `base` above 0 to
    scale.
    """
    from vantage.encoders import backbone_named
    from vantage.planning.sizing import with_network

    run = recipe(size)
    if backbone:
        run = with_network(run, backbone_named(backbone, size))
    return _with_optimizer(run, optimizer) if optimizer else run


def _with_optimizer(run: "Run", name: str) -> "Run":
    """The run with another optimizer, at the learning rate that suits it. One of your own keeps the run's rate. So does
    one of the kind that the run has, which also keeps its settings if it is only named."""
    from vantage.training.optimizer_names import optimizer_named

    optimizer, base = optimizer_named(name)
    same_kind = isinstance(run.optimizer, type(optimizer))
    if base is None or same_kind:
        return run if same_kind and "(" not in name else replace(run, optimizer=optimizer)
    learning_rate = run.learning_rate
    if not (old_base := getattr(learning_rate, "base", 0)):
        raise UserError(
            f"--optimizer {name} scales the recipe's learning rate, but {type(learning_rate).__name__} has no base"
            f" above 0: replace the option by --set 'optimizer={type(optimizer).__name__}()' --set"
            f" learning_rate='CosineByStep({base:g})', which suits a batch of 256"
        )
    return replace(run, optimizer=optimizer, learning_rate=learning_rate.scale(base * run.batch_size / 256 / old_base))


def named_part_paths(run: "Run", *, backbone: str = "", optimizer: str = "") -> dict[str, str]:
    """The options that choose parts of a run by name, by the paths of these parts."""
    backbones = [one.path for one in settings_in(run.encoders, "encoders") if one.path.endswith(".backbone")]
    return dict.fromkeys(backbones if backbone else (), "--backbone") | (
        {"optimizer": "--optimizer"} if optimizer else {}
    )


def refuse_replaced(changes: Iterable[str], run: "Run", *, backbone: str = "", optimizer: str = "") -> None:
    """Raises `UserError` if changed paths replace all parts that an option chose by name: the head and the learning
    rate would be those of the option's."""
    named = named_part_paths(run, backbone=backbone, optimizer=optimizer)
    for option in dict.fromkeys(named.values()):
        paths = [path for path, chosen_by in named.items() if chosen_by == option]
        by = [next((one for one in changes if f"{path}.".startswith(f"{one}.")), "") for path in paths]
        if all(by):
            raise UserError(f"{option} is given, but --set {by[0]} replaces what it chooses: leave one out")


def settable(words: list[str]) -> Iterable[str]:
    """The paths that `--set` may change, if the first word is a recipe or the folder of a run."""
    from vantage.planning.sizing import default_recipe

    name = next(iter(words), "")
    try:
        is_named = name and not name.startswith("-")
        run = run_named(name, None) or find_recipe(name)(224) if is_named else default_recipe(224)
        return [setting.path for setting in settings_in(run)]
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


def at_some_size(read: Callable[[int], T], size: int | None) -> T:
    """What `read` gives for the view size of an option; if omitted, for one of the sizes that suit some images
    (`for_one_of`), since a path may exist at one size only."""
    from vantage.planning.ladder import SIZES

    return for_one_of([size] if size is not None else [224, *(small for _, small in SIZES)], read)


def for_one_of(numbers: Iterable[int], read: Callable[[int], T]) -> T:
    """What `read` gives for the first of the numbers at which it raises no `UserError`. Raises the first `UserError` if
    there is none: which number holds depends on images that are not read yet, but none of them can work."""
    first: UserError | None = None
    for each in numbers:
        try:
            return read(each)
        except UserError as problem:
            first = first or problem
    assert first is not None
    raise first


def with_learned_views(recipe: "Callable[[int], Run]", folder: str, console: Console) -> "Callable[[int], Run]":
    """The recipe with the learned views in a folder, or the unchanged recipe if no folder is named. Says so if they are
    still being learned.

    Raises `UserError` if the folder holds none, or if the recipe's views have no color space.
    """
    if not folder:
        return recipe
    from vantage.studies.view_learning import epochs_done
    from vantage.views.channels import in_space
    from vantage.views.colors.learned import learned_space

    space = learned_space(folder)
    completed, total = epochs_done(Path(folder))
    if completed < total:
        console.note(
            f"the views in {folder} are not fully learned, after {completed:,} of {total:,} epochs: training takes"
            f" {Path(space.file).name} as it is now"
        )

    @wraps(recipe)
    def in_learned_space(size: int) -> "Run":
        run = recipe(size)
        return replace(run, views=in_space(run.views, space))

    in_learned_space(224)
    return in_learned_space
