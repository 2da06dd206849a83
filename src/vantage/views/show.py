"""A picture of images and the views that are made of them, so that one can look at what a recipe does.

b: images   n: patches   c: channels   s, p: side of a view and of a patch in pixels   h, w: of a picture, in pixels
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw
from torch import Tensor
from torch.nn import functional

from vantage.composition.fitting import parts_of
from vantage.errors import UserError
from vantage.views.augmentation import ViewMaker, Views
from vantage.views.channels import Channels
from vantage.views.frequencies import Frequencies
from vantage.views.jigsaw import WithJigsaw
from vantage.views.operations.color import Normalize
from vantage.views.patches import Patches

__all__ = ["Column", "columns", "fitted", "picture"]

_EDGE, _HEADER = 4, 18  # pixels between views, and of the words above them


class Column(NamedTuple):
    """One view of every image, to be looked at."""

    words: str
    """What it is."""
    images: Float[Tensor, "b 3 _ _"]
    """Colors from 0 to 1."""


def columns(maker: ViewMaker, made: Sequence[Float[Tensor, "b ..."]]) -> list[Column]:
    """Views as pictures: normalization undone, channels in gray, patches in their grid, high frequencies about gray.

    Views of a maker of one\'s own are stretched to all of [0, 1].
    """
    match maker:
        case WithJigsaw():
            return [*columns(maker.views, made[:-1]), Column("jigsaw", _grid(_undone(maker.jigsaw, made[-1])))]
        case Channels():
            names = [(view, channel) for view, some in enumerate(maker.channels) for channel in some]
            each = torch.cat(list(made), 1).unbind(1)
            return [
                Column(f"view {view}: channel {channel}", _stretched(gray[:, None]).expand(-1, 3, -1, -1))
                for (view, channel), gray in zip(names, each, strict=True)
            ]
        case Frequencies():
            low, high = made
            return [Column("low", _undone(maker, low)), Column("high", _undone(maker, high, about_gray=True))]
        case Views():
            pairs = enumerate(zip(maker.views, made, strict=True))
            return [Column(f"view {number}", _undone(view, images)) for number, (view, images) in pairs]
        case Patches():
            return [Column(f"patch {number}", _undone(maker, images)) for number, images in enumerate(made)]
        case _:
            return [Column(f"view {number}", _stretched(images)[:, :3]) for number, images in enumerate(made)]


def picture(
    maker: ViewMaker, images: Sequence[UInt8[Tensor, "3 _ _"]], times: int = 1, seed: int = 0, side: int = 128
) -> Image.Image:
    """Each image in a row, and beside it its views, drawn `times` times from `seed`; each `side` pixels wide.

    Raises `UserError` for no images, or images that the views cannot be made of.
    """
    if not images or times < 1:
        raise UserError(f"{len(images)} images, {times} times: there is nothing to show; give at least one of each")
    shown = [Column("image", torch.stack([fitted(image[None] / 255, side)[0] for image in images]))]
    generator = torch.Generator().manual_seed(seed)
    for _ in range(times):
        crops = [maker.crop(image, generator) for image in images]
        made = maker.finish(tuple(torch.stack(part) for part in zip(*crops, strict=True)), generator)
        shown += [Column(words, fitted(pixels, side)) for words, pixels in columns(maker, made)]
    return _drawn(shown, side)


def _drawn(shown: list[Column], side: int) -> Image.Image:
    rows, step = len(shown[0].images), side + _EDGE
    whole = Image.new("RGB", (len(shown) * step + _EDGE, _HEADER + rows * step + _EDGE), "white")
    draw = ImageDraw.Draw(whole)
    for number, column in enumerate(shown):
        left = _EDGE + number * step
        draw.text((left, 3), column.words, fill="black")
        for row, pixels in enumerate((column.images * 255).round().byte().movedim(1, -1)):
            whole.paste(Image.fromarray(pixels.contiguous().numpy()), (left, _HEADER + _EDGE + row * step))
    return whole


def _undone(
    maker: object, images: Float[Tensor, "b *n 3 s s"], about_gray: bool = False
) -> Float[Tensor, "b *n 3 s s"]:
    """Colors before they were normalized; where only a difference was, about gray."""
    normalized = [part for part in parts_of(maker) if isinstance(part, Normalize)]
    if not normalized:
        return images.clamp(0, 1)
    mean, std = (images.new_tensor(part)[:, None, None] for part in (normalized[-1].mean, normalized[-1].std))
    return (images * std + (0.5 if about_gray else mean)).clamp(0, 1)


def _stretched(images: Float[Tensor, "b c s s"]) -> Float[Tensor, "b c s s"]:
    """From the least to the largest number of the batch, over [0, 1]."""
    low, high = images.amin(), images.amax()
    return (images - low) / (high - low).clamp(min=1e-12)


def _grid(patches: Float[Tensor, "b n 3 p p"]) -> Float[Tensor, "b 3 _ _"]:
    """Patches in rows, in the order they are handed on, with lines between them."""
    cells = math.isqrt(patches.shape[1])
    padded = functional.pad(patches, (0, 1, 0, 1), value=1.0).unflatten(1, (cells, -1))
    return padded.permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)


def fitted(images: Float[Tensor, "b 3 h w"], side: int) -> Float[Tensor, "b 3 {side} {side}"]:
    """Images of any shape in a square, the rest white; small ones enlarged without smoothing."""
    longer = max(images.shape[-2:])
    high, wide = (max(1, round(length * side / longer)) for length in images.shape[-2:])
    if longer <= side:
        scaled = functional.interpolate(images, (high, wide))
    else:
        scaled = functional.interpolate(images, (high, wide), mode="bilinear", antialias=True).clamp(0, 1)
    top, left = (side - high) // 2, (side - wide) // 2
    return functional.pad(scaled, (left, side - wide - left, top, side - high - top), value=1.0)
