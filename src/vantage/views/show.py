"""A picture of images and their views, to see what a recipe does.

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

__all__ = ["ViewPanel", "panels", "in_square", "picture"]

_EDGE, _GAP, _HEADER, _TEXT = 4, 10, 18, 15
"""In pixels: gap between views, extra gap between draws, height of headings, size of their letters."""


class ViewPanel(NamedTuple):
    """One view of every image, as it is shown."""

    heading: str
    """What it shows."""
    images: Float[Tensor, "b 3 _ _"]
    """Colors from 0 to 1."""


def panels(maker: ViewMaker, views: Sequence[Float[Tensor, "b ..."]]) -> list[ViewPanel]:
    """Views as pictures: normalization undone, channels in gray, patches in their grid, high frequencies around gray.

    Views of any other maker are stretched to fill [0, 1].
    """
    match maker:
        case WithJigsaw():
            return [*panels(maker.views, views[:-1]), ViewPanel("jigsaw", _grid(_denormalize(maker.jigsaw, views[-1])))]
        case Channels():
            names = [(view, channel) for view, channels in enumerate(maker.channels) for channel in channels]
            each = torch.cat(list(views), 1).unbind(1)
            return [
                ViewPanel(f"view {view}: channel {channel}", _stretch(gray[:, None]).expand(-1, 3, -1, -1))
                for (view, channel), gray in zip(names, each, strict=True)
            ]
        case Frequencies():
            low, high = views
            return [
                ViewPanel("low", _denormalize(maker, low)),
                ViewPanel("high", _denormalize(maker, high, around_gray=True)),
            ]
        case Views():
            pairs = enumerate(zip(maker.views, views, strict=True))
            return [ViewPanel(f"view {number}", _denormalize(view, images)) for number, (view, images) in pairs]
        case Patches():
            return [ViewPanel(f"patch {number}", _denormalize(maker, images)) for number, images in enumerate(views)]
        case _:
            return [ViewPanel(f"view {number}", _stretch(images)[:, :3]) for number, images in enumerate(views)]


def picture(
    maker: ViewMaker, images: Sequence[UInt8[Tensor, "3 _ _"]], times: int = 1, seed: int = 0, side: int = 128
) -> Image.Image:
    """A row for each image: the image, then its views, drawn `times` times from `seed`; each is `side` pixels wide.

    Raises `UserError` if there are no images, or if views cannot be made from them.
    """
    if not images or times < 1:
        raise UserError(f"{len(images)} images, {times} times: there is nothing to show; give at least one of each")
    draws = [[ViewPanel("image", torch.stack([in_square(image[None] / 255, side)[0] for image in images]))]]
    generator = torch.Generator().manual_seed(seed)
    for _ in range(times):
        crops = [maker.crop(image, generator) for image in images]
        views = maker.finish(tuple(torch.stack(part) for part in zip(*crops, strict=True)), generator)
        draws.append([ViewPanel(heading, in_square(pixels, side)) for heading, pixels in panels(maker, views)])
    return _table(draws, side)


def _table(draws: list[list[ViewPanel]], side: int) -> Image.Image:
    """A column for each view, with a gap between draws."""
    columns = [(number * _GAP, column) for number, draw in enumerate(draws) for column in draw]
    rows, step = len(draws[0][0].images), side + _EDGE
    size = (len(columns) * step + _EDGE + columns[-1][0], _HEADER + rows * step + _EDGE)
    whole = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(whole)
    widest = max(draw.textlength(column.heading, font_size=_TEXT) for _, column in columns)
    size = min(_TEXT, _TEXT * side / widest)  # so that no heading reaches into the next column
    for number, (gap, column) in enumerate(columns):
        left = _EDGE + number * step + gap
        draw.text((left, 0), column.heading, fill="black", font_size=size)
        for row, pixels in enumerate((column.images * 255).round().byte().movedim(1, -1)):
            whole.paste(Image.fromarray(pixels.contiguous().numpy()), (left, _HEADER + _EDGE + row * step))
    return whole


def _denormalize(
    maker: object, images: Float[Tensor, "b *n 3 s s"], around_gray: bool = False
) -> Float[Tensor, "b *n 3 s s"]:
    """Colors before normalization; a difference of colors is shown around gray."""
    normalizations = [part for part in parts_of(maker) if isinstance(part, Normalize)]
    if not normalizations:
        return images.clamp(0, 1)
    mean, std = (images.new_tensor(part)[:, None, None] for part in (normalizations[-1].mean, normalizations[-1].std))
    return (images * std + (0.5 if around_gray else mean)).clamp(0, 1)


def _stretch(images: Float[Tensor, "b c s s"]) -> Float[Tensor, "b c s s"]:
    """The range of values in the batch, stretched to [0, 1]."""
    low, high = images.amin(), images.amax()
    return (images - low) / (high - low).clamp(min=1e-12)


def _grid(patches: Float[Tensor, "b n 3 p p"]) -> Float[Tensor, "b 3 _ _"]:
    """Patches in a grid, in the order in which they are returned, with lines between them."""
    cells = math.isqrt(patches.shape[1])
    tiles = functional.pad(patches, (0, 1, 0, 1), value=1.0).unflatten(1, (cells, -1))
    return tiles.permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)


def in_square(images: Float[Tensor, "b 3 h w"], side: int) -> Float[Tensor, "b 3 {side} {side}"]:
    """Images of any shape, scaled to fit a square on white; small ones are enlarged without smoothing."""
    longer = max(images.shape[-2:])
    high, wide = (max(1, round(length * side / longer)) for length in images.shape[-2:])
    if longer <= side:
        small = functional.interpolate(images, (high, wide))
    else:
        small = functional.interpolate(images, (high, wide), mode="bilinear", antialias=True).clamp(0, 1)
    top, left = (side - high) // 2, (side - wide) // 2
    return functional.pad(small, (left, side - wide - left, top, side - high - top), value=1.0)
