"""Parameters for a share of a batch: those that the whole batch would get, however many processes share it.

b: images of the whole batch
"""

from collections.abc import Callable
from typing import Any

import torch

from vantage.views.operations.operation import slice_rows

__all__ = ["ShareGenerator", "draw_share", "share_in"]


class ShareGenerator(torch.Generator):
    """A generator for images that are only a part of a batch: parameters are drawn for all of it (`draw_share`)."""

    share: tuple[int, int, int] | None = None
    """First image, end, and images of the whole batch; if None, the images are all of it."""


def share_in(count: int, generator: torch.Generator) -> tuple[int, int, int]:
    """First image, end, and images of the whole batch, of `count` images that a generator is used for."""
    share = generator.share if isinstance(generator, ShareGenerator) else None
    return (0, count, count) if share is None or not count else share


def draw_share(draw: Callable[[int, torch.Generator], Any], count: int, generator: torch.Generator) -> Any:
    """The parameters of `count` rows, equally many for each image: drawn for the whole batch, cut to the share of this
    generator."""
    start, stop, whole = share_in(count, generator)
    if stop - start == whole:
        return draw(count, generator)
    each = count // (stop - start)
    return slice_rows(draw(each * whole, generator), each * start, each * stop)
