"""The option --init: what a run cannot start from is refused before images are read and speeds are measured."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from vantage.cli.reading.recipe_options import at_some_size

if TYPE_CHECKING:
    from vantage.training.run import Run

__all__ = ["check_start"]


def check_start(init: str, run_at: "Callable[[int], Run]", size: int | None) -> None:
    """Raises `UserError` if there is nothing to start from at `init`, or if its backbone fits the run at no size of
    views, or not at `size`."""
    from vantage.training.start.warm_parts import check_backbones
    from vantage.training.start.warm_start import read_start

    start = read_start(init)
    at_some_size(lambda each: check_backbones(start, run_at(each)), size)
