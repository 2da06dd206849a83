"""The option --init: what a run cannot start from is refused before images are read and speeds are measured."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING

from vantage.cli.reading.recipe_options import at_some_size

if TYPE_CHECKING:
    from vantage.training.run import Run
    from vantage.training.start.warm_start import WarmStart

__all__ = ["check_start", "on_network_of"]


def on_network_of(init: str, recipe: "Callable[[int], Run]") -> "Callable[[int], Run]":
    """The recipe on the backbone of the run to start from; as it is if that has several, or for a file of weights.
    Raises `UserError` if there is nothing to start from."""
    from vantage.composition.fitting import parts_of
    from vantage.encoders import Encoder
    from vantage.planning.sizing import with_network
    from vantage.training.start.warm_start import run_to_start

    run = run_to_start(init)
    encoders = parts_of(run.encoders) if run else ()
    first, *others = dict.fromkeys(part.backbone for part in encoders if isinstance(part, Encoder)) or (None,)
    if first is None or others:
        return recipe

    @wraps(recipe)
    def on_its_network(size: int) -> "Run":
        return with_network(recipe(size), first)

    return on_its_network


def check_start(init: str, run_at: "Callable[[int], Run]", size: int | None) -> "WarmStart | None":
    """What `init` starts a run from; None if it is empty. Raises `UserError` if there is nothing, or if its backbone
    fits the run at no size of views, or not at `size`."""
    if not init:
        return None
    from vantage.training.start.warm_parts import check_backbones
    from vantage.training.start.warm_start import read_start

    start = read_start(init)
    at_some_size(lambda each: check_backbones(start, run_at(each)), size)
    return start
