"""Operations on batches of images, one after the other.

b: images   m: images of a piece   c: channels   h, w: size of an image in pixels
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from vantage.views.operations.operation import Operation, join_rows, slice_rows
from vantage.views.operations.share import draw_share

__all__ = ["perform", "perform_each"]

PIECE = 1 << 21
"""Bytes of float pixels processed at a time on a CPU, so that they stay in a core's cache between operations.

An image of at least an eighth of this size is processed alone, so it is never copied into a batch.
"""

TOGETHER = 1 << 28
"""Bytes of float pixels up to which equal views are made together on a GPU. Small batches take it less time to compute
than the host to start; large ones would only take memory."""

_FEWEST = 4  # pieces that are worth putting together


def perform(
    images: UInt8[Tensor, "b 3 h w"], operations: tuple[Operation, ...], generator: torch.Generator
) -> Float[Tensor, "b c _ _"]:
    """The images as floats in [0, 1], changed by every operation in turn, without gradients.

    Parameters are drawn for the whole batch, one operation after the other, so they depend neither on the
    size of a piece nor on how many processes share the batch (`ShareGenerator`).
    """
    return _perform(images, operations, _draw(len(images), operations, generator))


def perform_each(
    images: Sequence[UInt8[Tensor, "b 3 h w"]],
    operations: Sequence[tuple[Operation, ...]],
    generator: torch.Generator,
) -> list[Float[Tensor, "b c _ _"]]:
    """What `perform` makes of each of several batches with operations of its own, one after the other. On a GPU, small
    batches of one size with the same operations are computed together."""
    if images[0].device.type == "cpu":
        return [perform(batch, each, generator) for batch, each in zip(images, operations, strict=True)]
    draws = [_draw(len(batch), each, generator) for batch, each in zip(images, operations, strict=True)]
    results = dict[int, Tensor]()
    for numbers in _together(images, operations):
        batch = images[numbers[0]] if len(numbers) == 1 else torch.cat([images[number] for number in numbers])
        parameters = [join_rows(rows) for rows in zip(*(draws[number] for number in numbers), strict=True)]
        views = _perform(batch, operations[numbers[0]], parameters).chunk(len(numbers))
        results |= dict(zip(numbers, views, strict=True))
    return [results[number] for number in range(len(images))]


def _together(images: Sequence[Tensor], operations: Sequence[tuple[Operation, ...]]) -> Iterator[list[int]]:
    """The numbers of the batches that are computed together."""
    kinds = [(batch.shape, each) for batch, each in zip(images, operations, strict=True)]
    for kind in [kind for number, kind in enumerate(kinds) if kind not in kinds[:number]]:
        numbers = [number for number, other in enumerate(kinds) if other == kind]
        most = max(1, TOGETHER // max(4 * kind[0].numel(), 1))
        yield from (numbers[at : at + most] for at in range(0, len(numbers), most))


def _draw(count: int, operations: tuple[Operation, ...], generator: torch.Generator) -> list[Any]:
    return [draw_share(operation.draw, count, generator) for operation in operations]


def _perform(
    images: UInt8[Tensor, "b 3 h w"], operations: tuple[Operation, ...], draws: list[Any]
) -> Float[Tensor, "b c _ _"]:
    count = len(images)
    piece = count if images.device.type != "cpu" else _piece(4 * images[:1].numel())
    # Mixed precision is for networks: under it these small matrix products would round pixels to 8 bits or fewer.
    with torch.no_grad(), torch.autocast(images.device.type, enabled=False):
        starts = range(0, max(count, 1), max(piece, 1))
        begun = (_apply_all(_floats(images[at : at + piece]), operations[:1], draws[:1], at) for at in starts)
        pieces, at = list[Tensor](), 0
        for part in _joined(begun):
            pieces.append(_apply_all(part, operations[1:], draws[1:], at))
            at += len(part)
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces)


def _joined(pieces: Iterator[Float[Tensor, "_ c h w"]]) -> Iterator[Float[Tensor, "_ c h w"]]:
    """The pieces, put together where the first operation, usually a crop, has left so few pixels that several fit into
    a cache: calls for a few small images take their time mostly for the call."""
    held: list[Tensor] = []
    for piece in pieces:
        held.append(piece)
        fit = PIECE // max(4 * piece.numel(), 1)
        if fit < _FEWEST or len(held) >= fit:
            yield held[0] if len(held) == 1 else torch.cat(held)
            held = []
    if held:
        yield torch.cat(held)


def _piece(size: int) -> int:
    """How many images of `size` bytes are processed at a time on a CPU."""
    return 1 if 8 * size >= PIECE else PIECE // max(size, 1)


def _floats(images: UInt8[Tensor, "m 3 h w"]) -> Float[Tensor, "m 3 h w"]:
    """Pixels from 0 to 1."""
    return images.contiguous().float().mul_(1 / 255)  # one call for both is twice as slow


def _apply_all(
    images: Float[Tensor, "m _ _ _"], operations: tuple[Operation, ...], draws: list[Any], start: int
) -> Float[Tensor, "m c _ _"]:
    """The images, of which the first is number `start` of the batch, changed by every operation in turn."""
    for operation, parameters in zip(operations, draws, strict=True):
        images = operation.apply(images, slice_rows(parameters, start, start + len(images)))
    return images
