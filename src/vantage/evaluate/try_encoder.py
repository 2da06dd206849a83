"""An encoder is tried on one real image before it is evaluated, so that a mismatch is reported before any work."""

from collections.abc import Iterator

from jaxtyping import UInt8
from torch import Tensor

from vantage.data.sources.source import Source
from vantage.encoding import encode
from vantage.errors import UnreadableImage, UserError, first_line
from vantage.frozen.encoder import FrozenEncoder

__all__ = ["try_encoder"]


def try_encoder(encoder: FrozenEncoder, source: Source) -> None:
    """Raises `UserError` if the network refuses a view of these images, or if its features are not vectors of its
    width. Nothing happens if no image can be decoded: the protocol then names the first one."""
    crop = next(_crops(encoder, source), None)
    if crop is None:
        return
    view = encoder.view.finish(crop[None])
    channels, height, width = view.shape[1:]
    seen = f"views of {channels} channels and {height} x {width} pixels"
    weight = next(encoder.backbone.parameters(), view)
    try:
        vector = encode(encoder.backbone, view.to(weight.device))
    except Exception as problem:  # a user's network may raise anything
        raise UserError(f"{encoder.name} does not fit {seen}: {first_line(problem)}") from problem
    if tuple(vector.shape) != (1, encoder.width):
        raise UserError(
            f"{encoder.name}: features of one image have the shape {tuple(vector.shape)} for {seen}; expected"
            f" (1, {encoder.width})"
        )


def _crops(encoder: FrozenEncoder, source: Source) -> Iterator[UInt8[Tensor, "3 s s"]]:
    """What the encoder sees of each image that can be decoded."""
    for number in range(len(source)):
        try:
            yield encoder.view.crop(source.image(number))
        except UnreadableImage:
            continue
