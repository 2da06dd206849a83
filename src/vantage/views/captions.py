"""Images with words below them, in a larger picture.

h, w: size of an image in pixels
"""

from functools import cache
from pathlib import Path

import torch
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from vantage.data.sources.names import text_of
from vantage.views.show import in_square

__all__ = ["LINE", "file_name", "paste", "write"]

LINE = 15
"""Height of a line of text in pixels."""

_TEXT = 11
"""Size of the letters in pixels."""


def paste(whole: Image.Image, corner: tuple[int, int], image: UInt8[Tensor, "3 h w"], side: int) -> None:
    """Paste an image into a square area of a picture, keeping its proportions."""
    pixels = (in_square(image[None] / 255, side)[0] * 255).round().to(torch.uint8).movedim(0, -1)
    whole.paste(Image.fromarray(pixels.contiguous().numpy()), corner)


@cache
def _font() -> ImageFont.FreeTypeFont:
    """The font that comes with matplotlib: Pillow's own has no letters but English ones."""
    from matplotlib import get_data_path

    return ImageFont.truetype(Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf"), _TEXT)


def write(draw: ImageDraw.ImageDraw, corner: tuple[int, int], words: str, room: int, color: str) -> None:
    """A line of text, shortened if it is wider than `room` pixels."""
    font, words = _font(), " ".join(text_of(words).splitlines())
    if draw.textlength(words, font) > room:
        while words and draw.textlength(words + "…", font) > room:
            words = words[:-1]
        words += "…"
    draw.text(corner, words, fill=color, font=font)


def file_name(name: str) -> str:
    """The end of a path."""
    return name.replace("\\", "/").rsplit("/", 1)[-1]
