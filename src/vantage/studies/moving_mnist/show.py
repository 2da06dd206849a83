"""A picture of clips and second views that share some of their factors.

s: side of a frame in pixels
"""

import torch
from jaxtyping import UInt8
from PIL import Image, ImageDraw
from torch import Tensor

from vantage.studies.moving_mnist.clips import Clips
from vantage.studies.moving_mnist.shared_factors import COMBINATIONS

__all__ = ["picture"]

_EDGE, _HEADER, _WORDS = 4, 16, 170  # pixels: gap between frames, height of the header, width of the names on the left


def picture(clips: Clips, count: int = 2) -> Image.Image:
    """The first `count` clips for each combination of shared factors: the visible frames, the last frame, and the
    second view."""
    number = torch.arange(min(count, len(clips)))
    side = clips.scene.canvas
    frames = range(1, clips.scene.seen + 1)
    heads = [*(f"frame {frame}" for frame in frames), f"frame {clips.scene.last}", "view 2"]
    step, rows = side + _EDGE, len(COMBINATIONS) * len(number)
    whole = Image.new("RGB", (_WORDS + len(heads) * step + 2 * _EDGE, _HEADER + rows * step + _EDGE), "white")
    draw = ImageDraw.Draw(whole)
    for column, words in enumerate(heads):
        draw.text((_column_start(column, len(frames), step), 2), words, fill="black")
    top = _HEADER
    for shared in COMBINATIONS:
        pairs = clips.pairs(0, number, shared)
        last, _ = clips.frames(0, number)
        draw.text((_EDGE, top + side // 2 - 6), shared.name, fill="black")
        for first, frame, second in zip(pairs.first, last, pairs.second, strict=True):
            for column, pixels in enumerate((*first, frame, second)):
                whole.paste(_image(pixels), (_column_start(column, len(frames), step), top))
            top += step
    return whole


def _column_start(column: int, frames: int, step: int) -> int:
    """The left edge of a column; columns after the first view have an extra gap."""
    return _WORDS + column * step + _EDGE * (column >= frames) + _EDGE * (column > frames)


def _image(pixels: UInt8[Tensor, "3 s s"]) -> Image.Image:
    return Image.fromarray(pixels.permute(1, 2, 0).contiguous().cpu().numpy())
