"""The features that a frozen encoder gives the images of a source.

n: images   b: images of a batch   d: width of the features
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from vantage.composition.field_types import expect
from vantage.data.sources.source import Source, labels_of, refuse_path
from vantage.encoding import Work, encode_all, encode_batches
from vantage.frozen.encoder import FrozenEncoder
from vantage.machine.usual_torch import usual_torch

__all__ = ["Features", "embed"]


@dataclass(frozen=True)
class Features:
    """Features, labels and names of the images of a source."""

    vector: Float[Tensor, "n d"]
    """Features, on the CPU in float32, as the backbone gives them (not of unit length)."""

    label: Int[Tensor, "n"]
    """Label of each image; −1 if it has none."""

    name: Sequence[str]
    """Name of each image in its source."""

    def __repr__(self) -> str:  # not every number and name
        rows, width = self.vector.shape
        return f"Features(vector: {rows:,} × {width:,}, label, name)"


@usual_torch()
def embed(encoder: FrozenEncoder, source: Source, work: Work | None = None) -> Features:
    """Features of every image of a source, through the encoder's deterministic view. All of them are held in memory.

    Raises `UnreadableImage`, which names the image, if one cannot be decoded: leave such images out first with
    `vantage.data.scan` and `vantage.data.readable`. Raises `UserError` for a path in place of an encoder or a source.
    """
    check_given(encoder, source)
    vector = encode_all(encoder.backbone, encoder.view, source, work or Work(), encoder.name)
    return Features(vector, labels_of(source), [source.name(number) for number in range(len(source))])


def check_given(encoder: Any, source: Any) -> None:
    """Raises `UserError` for the name of a run in place of its encoder, and for a path in place of a source."""
    expect(encoder, FrozenEncoder, "the encoder", "vantage.load(RUN)")
    refuse_path(source)
    expect(source, Source, "the source", "vantage.open_source(PATH)")


def batches(
    encoder: FrozenEncoder, source: Source, work: Work, start: int = 0
) -> Iterator[tuple[int, Float[Tensor, "b d"]]]:
    """The number of the first image and the features of each batch, from image `start` on; see `encode_batches`."""
    return encode_batches(encoder.backbone, encoder.view, source, work, encoder.name, start)
