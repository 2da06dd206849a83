"""A contact sheet: images in rows, with a line or two below each."""

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from vantage.data.sources.source import Source
from vantage.errors import UnreadableImage
from vantage.views.captions import LINE, paste, write

__all__ = ["Tile", "contact_sheet"]

_GAP, _TOP = 12, 34
"""In pixels: space between images, and height of the title."""


@dataclass(frozen=True)
class Tile:
    """One image of a contact sheet."""

    source: Source
    """Where the image is."""
    number: int
    """Its number there."""
    words: tuple[str, ...] = ()
    """Up to two lines below it."""
    framed: bool = False
    """Whether a frame sets it apart from the others in its row."""


def contact_sheet(rows: Sequence[Sequence[Tile]], title: str, side: int = 112) -> Image.Image:
    """The rows of images, each image `side` pixels wide, under a title. An image that can no longer be read is an empty
    frame."""
    columns = max((len(row) for row in rows), default=0)
    wide, high = side + _GAP, side + 2 * LINE + _GAP
    whole = Image.new("RGB", (max(640, columns * wide + _GAP), _TOP + max(1, len(rows)) * high), "white")
    draw = ImageDraw.Draw(whole)
    draw.fontmode = "L"
    write(draw, (_GAP, 10), title if rows else f"{title}: there is nothing to show", whole.width - 2 * _GAP, "black")
    for row, tiles in enumerate(rows):
        for column, tile in enumerate(tiles):
            x, y = _GAP + column * wide, _TOP + row * high
            try:
                paste(whole, (x, y), tile.source.image(tile.number), side)
            except UnreadableImage:
                draw.rectangle((x, y, x + side - 1, y + side - 1), outline="gray")
            if tile.framed:
                draw.rectangle((x - 3, y - 3, x + side + 2, y + side + 2), outline="black", width=2)
            for line, words in enumerate(tile.words):
                write(draw, (x, y + side + 1 + line * LINE), words, side + _GAP - 4, "black" if line else "#444444")
    return whole
