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
_FEWEST_IMAGES = 20  # of a piece of several: calls for fewer take their time mostly for the call


def perform(
    images: UInt8[Tensor, "b 3 h w"], operations: tuple[Operation, ...], generator: torch.Generator
) -> Float[Tensor, "b c _ _"]:
    """The images as floats in [0, 1], changed by every operation in turn, without gradients.

    Parameters are drawn for the whole batch, one operation after the other, so they depend neither on the
    size of a piece nor on how many processes share the batch (`ShareGenerator`).
    """
    return _perform(images, [operations], [_draw(len(images), operations, generator)])[0]


def perform_each(
    images: Sequence[UInt8[Tensor, "b 3 h w"]],
    operations: Sequence[tuple[Operation, ...]],
    generator: torch.Generator,
) -> list[Float[Tensor, "b c _ _"]]:
    """What `perform` makes of each of several batches with operations of its own, one after the other. On a CPU, a
    batch that occurs several times is turned into floats once; on a GPU, small batches of one size with the same
    operations are computed together."""
    draws = [_draw(len(batch), each, generator) for batch, each in zip(images, operations, strict=True)]
    results = dict[int, Tensor]()
    if images[0].device.type == "cpu":
        for numbers in _same(images):
            batch, each = images[numbers[0]], [operations[number] for number in numbers]
            views = _perform(batch, each, [draws[number] for number in numbers])
            results |= dict(zip(numbers, views, strict=True))
    else:
        for numbers in _together(images, operations):
            batch = images[numbers[0]] if len(numbers) == 1 else torch.cat([images[number] for number in numbers])
            parameters = [join_rows(rows) for rows in zip(*(draws[number] for number in numbers), strict=True)]
            views = _perform(batch, [operations[numbers[0]]], [parameters])[0].chunk(len(numbers))
            results |= dict(zip(numbers, views, strict=True))
    return [results[number] for number in range(len(images))]


def _same(images: Sequence[Tensor]) -> list[list[int]]:
    """The numbers of the batches, those of one and the same tensor together."""
    numbers = dict[int, list[int]]()
    for number, batch in enumerate(images):
        numbers.setdefault(id(batch), []).append(number)
    return list(numbers.values())


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
    images: UInt8[Tensor, "b 3 h w"], operations: Sequence[tuple[Operation, ...]], draws: Sequence[list[Any]]
) -> list[Float[Tensor, "b c _ _"]]:
    """What each of several sequences of operations makes of the same images."""
    count = len(images)
    piece = count if images.device.type != "cpu" else _piece(4 * images[:1].numel())
    views = [_View(each, parameters) for each, parameters in zip(operations, draws, strict=True)]
    # Mixed precision is for networks: under it these small matrix products would round pixels to 8 bits or fewer.
    with torch.no_grad(), torch.autocast(images.device.type, enabled=False):
        for at in range(0, max(count, 1), max(piece, 1)):
            pixels = _floats(images[at : at + piece])
            begun = [view.begin(pixels, at) for view in views]
            del pixels  # leaves its place in the cache to the next operations
            for view, part in zip(views, begun, strict=True):
                view.go_on(part)
        return [view.whole() for view in views]


class _View:
    """A view of a batch, made of one piece after the other.

    The results of the first operation, usually a crop, are put together where it has left so few pixels that several
    fit into a cache: calls for a few small images take their time mostly for the call.
    """

    def __init__(self, operations: tuple[Operation, ...], draws: list[Any]) -> None:
        self.operations, self.draws = operations, draws
        self.held: list[Tensor] = []  # results of the first operation
        self.pieces: list[Tensor] = []  # results of all
        self.done = 0  # images

    def begin(self, pixels: Float[Tensor, "m 3 h w"], start: int) -> Float[Tensor, "m _ _ _"]:
        """The first operation on a piece of the batch, whose first image is number `start`; it is not changed."""
        return _apply_all(pixels, self.operations[:1], self.draws[:1], start)

    def go_on(self, part: Float[Tensor, "m _ _ _"]) -> None:
        """The other operations, at once or when there are more pieces, on what `begin` has made."""
        self.held.append(part)
        fit = PIECE // max(4 * part.numel(), 1)
        if fit < _FEWEST or len(self.held) >= fit:
            self._finish_held()

    def _finish_held(self) -> None:
        part = self.held[0] if len(self.held) == 1 else torch.cat(self.held)
        self.pieces.append(_apply_all(part, self.operations[1:], self.draws[1:], self.done))
        self.done += len(part)
        self.held = []

    def whole(self) -> Float[Tensor, "b c _ _"]:
        """The view of the whole batch."""
        if self.held:
            self._finish_held()
        return self.pieces[0] if len(self.pieces) == 1 else torch.cat(self.pieces)


def _piece(size: int) -> int:
    """How many images of `size` bytes are processed at a time on a CPU."""
    return 1 if 8 * size >= PIECE else max(_FEWEST_IMAGES, PIECE // max(size, 1))


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
