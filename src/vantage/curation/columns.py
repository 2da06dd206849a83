"""What all searches share: features, columns of names and classes, images of a contact sheet.

n: images   d: width of the features
"""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from vantage.curation.sheet import Tile
from vantage.data.sources.names import text_of
from vantage.data.sources.source import Source, class_of
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.features import check_given
from vantage.frozen.labeled_features import finite_features
from vantage.views.captions import file_name

__all__ = ["DOUBT", "ROWS", "WIDE", "features", "label_column", "names", "tile"]

ROWS, WIDE = 24, 8
"""Most rows of a contact sheet, and images in a row."""

DOUBT = "; most images have the same features as another: either they are copies, or the features mean nothing"
"""What is added to a rule if it is so."""


def features(encoder: FrozenEncoder, source: Source, work: Work) -> Float[Tensor, "n d"]:
    """Features of every image, cached, on the device of the work.

    Raises `UserError` for fewer than two images, if a feature is not finite, and for a path in place of an encoder or a
    source.
    """
    check_given(encoder, source)
    if len(source) < 2:
        raise UserError("a search compares images with each other: give at least two")
    return finite_features(encoder, source, work).to(work.resolved_device())


def names(source: Source, numbers: Sequence[int]) -> list[str]:
    """Names of images, as a table can hold them."""
    return [text_of(source.name(number)) for number in numbers]


def label_column(source: Source, numbers: Sequence[int], name: str = "label") -> dict[str, list[str]]:
    """The classes of images as a column; no column if the source has no classes."""
    return {name: [class_of(source, number) for number in numbers]} if source.classes else {}


def tile(source: Source, number: int, words: str, framed: bool = False) -> Tile:
    """An image of a contact sheet, with words and its name below it."""
    return Tile(source, number, (words, file_name(source.name(number))), framed)
