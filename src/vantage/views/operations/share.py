"""Parameters for one process's share of a batch, the same however many processes share the batch.

b: images of the whole batch
"""

from collections.abc import Callable
from typing import Any

import torch

from vantage.views.operations.operation import slice_rows

__all__ = ["ShareGenerator", "draw_share", "share_in"]


class ShareGenerator(torch.Generator):
    """A generator for images that are only part of a batch: parameters are drawn for all of it (`draw_share`)."""

    share: tuple[int, int, int] | None = None
    """First image, end, and number of images in the whole batch; None if the images are the whole batch."""


def share_in(count: int, generator: torch.Generator) -> tuple[int, int, int]:
    """First image, end, and number of images in the whole batch, for a generator that is used for `count` images."""
    share = generator.share if isinstance(generator, ShareGenerator) else None
    return (0, count, count) if share is None or not count else share


def draw_share(draw: Callable[[int, torch.Generator], Any], count: int, generator: torch.Generator) -> Any:
    """The parameters of `count` rows, the same number for each image, drawn for the whole batch and cut to this
    generator's share."""
    start, stop, whole = share_in(count, generator)
    if stop - start == whole:
        return draw(count, generator)
    each = count // (stop - start)
    return slice_rows(draw(each * whole, generator), each * start, each * stop)
