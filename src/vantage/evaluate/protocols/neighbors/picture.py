"""A picture of retrieval: test images in rows, and beside each its nearest training images.

q: test images   k: neighbors
"""

from collections.abc import Sequence

from PIL import Image, ImageDraw

from vantage.data.sources.source import Source, class_of
from vantage.errors import UserError
from vantage.evaluate.protocols.neighbors.retrieval import NearestRows
from vantage.views.captions import LINE, file_name, paste, write

__all__ = ["rows_of", "retrieval_picture"]

_RIGHT, _WRONG = (0, 128, 60), (200, 30, 45)
_FRAME, _GAP, _BADGE = 5, 12, 18
"""In pixels: width of a frame, space between images, side of the mark in a corner."""


def rows_of(test: Source, count: int) -> list[int]:
    """Numbers of `count` test images, spread evenly over their set. Raises `UserError` for a count below 1."""
    if count < 1:
        raise UserError(f"a picture of {count} images shows nothing: give --rows 1 or more")
    count = min(count, len(test))
    return [number * len(test) // count for number in range(count)]


def retrieval_picture(
    nearest: NearestRows, train: Source, test: Source, rows: Sequence[int], title: str = "", side: int = 96
) -> Image.Image:
    """The test images `rows`, each beside its neighbors. `nearest` holds the neighbors of all of `test`; every image is
    drawn `side` pixels wide.

    A neighbor of the same class has a solid green frame and a check mark in the corner, one of another class a dashed
    red frame and a cross, so that no one needs to distinguish colors. Without labels there are neither frames nor
    marks. Under each image stands its class, or its name if it has none; under a neighbor its cosine too.

    Raises `UserError` for a side below 16 or above 1,024.
    """
    if not 16 <= side <= 1024:
        raise UserError(f"side is {side} pixels (--side); it must be between 16 and 1024")
    steps = (side + 2 * _FRAME + _GAP, side + 2 * _FRAME + 2 * LINE + _GAP)
    top = (2 if title else 1) * (LINE + 4) + _GAP
    columns = nearest.number.shape[1] + 1
    whole = Image.new("RGB", (columns * steps[0] + 2 * _GAP, top + len(rows) * steps[1]), "white")
    draw = ImageDraw.Draw(whole)
    draw.fontmode = "L"
    write(draw, (_GAP, 6), title, whole.width - 2 * _GAP, "black")
    for column in range(columns):
        heading = str(column) if column else "looked up"
        write(draw, (_column_start(column, steps[0]), top - LINE - 4), heading, side, "gray")
    for row, number in enumerate(rows):
        height = top + row * steps[1]
        paste(whole, _inside(_column_start(0, steps[0]), height), test.image(number), side)
        _lines(draw, (_column_start(0, steps[0]), height), side, class_of(test, number), file_name(test.name(number)))
        for column, neighbor in enumerate(nearest.number[number].tolist()):
            corner = (_column_start(column + 1, steps[0]), height)
            paste(whole, _inside(*corner), train.image(neighbor), side)
            if nearest.right is not None:
                _frame(draw, corner, side, bool(nearest.right[number, column]))
            cosine = f"{float(nearest.cosine[number, column]):.2f}"
            class_name = class_of(train, neighbor)
            _lines(draw, corner, side, class_name or file_name(train.name(neighbor)), cosine)
    return whole


def _column_start(column: int, step: int) -> int:
    """Where a column begins; the neighbors stand a little apart from the image that was looked up."""
    return _GAP + column * step + (_GAP if column else 0)


def _inside(left: int, top: int) -> tuple[int, int]:
    """The corner of an image within its frame."""
    return left + _FRAME, top + _FRAME


def _frame(draw: ImageDraw.ImageDraw, corner: tuple[int, int], side: int, right: bool) -> None:
    """Frame and mark of a neighbor."""
    x, y, end = corner[0], corner[1], side + 2 * _FRAME
    color = _RIGHT if right else _WRONG
    draw.rectangle((x, y, x + end - 1, y + end - 1), outline=color, width=_FRAME)
    if not right:  # gaps in the frame
        for start in range(_FRAME + 6, end - _FRAME - 4, 14):
            for box in (
                (x + start, y, x + start + 5, y + _FRAME - 1),
                (x + start, y + end - _FRAME, x + start + 5, y + end - 1),
                (x, y + start, x + _FRAME - 1, y + start + 5),
                (x + end - _FRAME, y + start, x + end - 1, y + start + 5),
            ):
                draw.rectangle(box, fill="white")
    left, low = x + end - _FRAME - _BADGE, y + _FRAME
    draw.rectangle((left, low, left + _BADGE - 1, low + _BADGE - 1), fill=color)
    if right:
        tick = [(left + 4, low + 9), (left + 8, low + 13), (left + 14, low + 5)]
        draw.line(tick, fill="white", width=3)
    else:
        draw.line((left + 5, low + 5, left + 13, low + 13), fill="white", width=3)
        draw.line((left + 13, low + 5, left + 5, low + 13), fill="white", width=3)


def _lines(draw: ImageDraw.ImageDraw, corner: tuple[int, int], side: int, first: str, second: str) -> None:
    low = corner[1] + side + 2 * _FRAME + 1
    lines = [line for line in (first, second) if line]
    for number, words in enumerate(lines):
        write(draw, (corner[0] + _FRAME, low + number * LINE), words, side + _GAP - 2, "black")
