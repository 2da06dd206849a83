"""Operations on a batch of images, one after the other.

b: images   m: images of a piece   c: channels   h, w: size of an image in pixels
"""

from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from vantage.views.operations.operation import Operation, slice_rows
from vantage.views.operations.share import draw_share

__all__ = ["perform"]

PIECE = 1 << 21
"""Bytes of float pixels processed at a time on a CPU, so that they stay in a core's cache between operations.

An image of at least an eighth of this size is processed alone, so it is never copied into a batch.
"""


def perform(
    images: UInt8[Tensor, "b 3 h w"], operations: tuple[Operation, ...], generator: torch.Generator
) -> Float[Tensor, "b c _ _"]:
    """The images as floats in [0, 1], changed by every operation in turn, without gradients.

    Parameters are drawn for the whole batch, one operation after the other, so they depend neither on the
    size of a piece nor on how many processes share the batch (`ShareGenerator`).
    """
    count = len(images)
    draws = [draw_share(operation.draw, count, generator) for operation in operations]
    piece = count if images.device.type != "cpu" else _piece(4 * images[:1].numel())
    # Mixed precision is for networks: under it these small matrix products would round pixels to 8 bits or fewer.
    with torch.no_grad(), torch.autocast(images.device.type, enabled=False):
        pieces = [
            _apply_all(images, operations, draws, start, start + piece)
            for start in range(0, max(count, 1), max(piece, 1))
        ]
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces)


def _piece(size: int) -> int:
    """How many images of `size` bytes are processed at a time on a CPU."""
    return 1 if 8 * size >= PIECE else PIECE // max(size, 1)


def _apply_all(
    images: UInt8[Tensor, "b 3 h w"], operations: tuple[Operation, ...], draws: list[Any], start: int, stop: int
) -> Float[Tensor, "m c _ _"]:
    """The images from `start` to `stop`, changed by every operation in turn."""
    part = images[start:stop].contiguous().float().mul_(1 / 255)  # one call for both is twice as slow
    for operation, parameters in zip(operations, draws, strict=True):
        part = operation.apply(part, slice_rows(parameters, start, stop))
    return part
