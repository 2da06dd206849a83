"""All thumbnails of the map in one picture, and the map as a picture for readers without JavaScript.

n: images
"""

import io
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate

from vantage.data.sources.source import Source
from vantage.data.threads import prefetch
from vantage.encoding import Work
from vantage.progress import task
from vantage.report.pictures import address_of, data_uri, pixels_of

__all__ = ["Cells", "Sprite", "cells_of", "mosaic", "sprite_of"]

_SIDES = ((2_500, 48), (6_000, 32), (15_000, 24))
"""Pairs (most thumbnails, side in pixels); further images are shown as dots."""

_QUALITIES = (70, 50, 30)


@dataclass(frozen=True)
class Cells:
    """Square thumbnails of every `step`-th image of a source."""

    pixels: UInt8[Tensor, "count 3 side side"]
    """The thumbnails."""
    step: int
    """Image i has thumbnail i / step, if that is a whole number."""


@dataclass(frozen=True)
class Sprite:
    """The thumbnails in one picture."""

    picture: str
    """The picture as a data URI; empty if there are no thumbnails."""
    side: int
    """Side of a thumbnail, in pixels."""
    columns: int
    """Thumbnails per row."""
    step: int
    """Image i has thumbnail i / step, if that is a whole number."""


def cells_of(source: Source, work: Work) -> Cells:
    """The center square of each image, as large as the number of images allows."""
    step = math.ceil(len(source) / _SIDES[-1][0])
    numbers = range(0, len(source), step)
    side = next(size for most, size in _SIDES if len(numbers) <= most)

    def small(number: int) -> UInt8[Tensor, "3 side side"]:
        image = source.image(number)
        short = min(image.shape[1:])
        top, left = (image.shape[1] - short) // 2, (image.shape[2] - short) // 2
        square = image[None, :, top : top + short, left : left + short].float()
        return interpolate(square, (side, side), mode="bilinear", antialias=True)[0].round().clamp(0, 255).byte()

    parts = [numbers[start : start + 256] for start in range(0, len(numbers), 256)]
    pixels, count = [], 0
    with task(work.progress, "thumbnails", len(numbers)):
        for part in prefetch(small, parts, work.num_workers, 2):
            pixels.append(torch.stack(part))
            count += len(part)
            work.progress.advance(count)
    return Cells(torch.cat(pixels), step)


def sprite_of(cells: Cells, most_bytes: int) -> Sprite:
    """Arrange the thumbnails in a grid, in WebP. To stay within `most_bytes`, reduce the quality, and then the number
    of thumbnails."""
    pixels, step = cells.pixels, cells.step
    while most_bytes > 0 and len(pixels) > 1:
        whole = Image.fromarray(_grid(pixels, columns := math.ceil(len(pixels) ** 0.5)).numpy())
        for quality in _QUALITIES:
            file = io.BytesIO()
            whole.save(file, "WEBP", quality=quality, method=2)
            if file.tell() <= most_bytes:
                return Sprite(address_of(file.getvalue()), pixels.shape[-1], columns, step)
        pixels, step = pixels[::2], 2 * step
    return Sprite("", cells.pixels.shape[-1], 1, 0)


def mosaic(cells: Cells, place: Float[Tensor, "n 2"], side: int = 720) -> str:
    """The map as a picture: a grid in which each square shows the image nearest to its center, if the square contains
    one."""
    squares = side // 24
    places = place[:: cells.step]
    position = (places * squares).clamp(0, squares - 1e-3)
    column, row = position.floor().long().unbind(1)
    off_center = (position - position.floor() - 0.5).square().sum(1)
    nearest: dict[tuple[int, int], int] = {}
    for number in off_center.argsort(stable=True).tolist():
        nearest.setdefault((int(column[number]), int(row[number])), number)
    whole = Image.new("RGBA", (side, side))
    for (x, y), number in nearest.items():
        cell = pixels_of(cells.pixels[number])
        whole.paste(cell.resize((24, 24)), (24 * x, 24 * y))
    return data_uri(whole, 70)


def _grid(pixels: UInt8[Tensor, "count 3 side side"], columns: int) -> UInt8[Tensor, "height width 3"]:
    """Arrange the thumbnails row by row; empty cells are black."""
    rows = math.ceil(len(pixels) / columns)
    whole = pixels.new_zeros(rows * columns, *pixels.shape[1:])
    whole[: len(pixels)] = pixels
    return whole.unflatten(0, (rows, columns)).permute(0, 3, 1, 4, 2).flatten(2, 3).flatten(0, 1).contiguous()
