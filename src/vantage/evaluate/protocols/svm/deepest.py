"""The features that linear SVMs are trained on: the deepest map of a backbone, pooled to two by two places.

n: images   d: width of the features   c: classes
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int8
from torch import Tensor

from vantage.data.sources.source import Source, SourceSubset, labels_of, marks_in, marks_of
from vantage.encoders.depths import GRIDS, AtDepth, grid_pool, maps
from vantage.encoding import Work, in_evaluation
from vantage.errors import UserError
from vantage.evaluate.protocols.features import finite_features
from vantage.frozen.encoder import FrozenEncoder
from vantage.views.evaluation import Straight

__all__ = ["EPSILON", "MarkedFeatures", "deepest", "marked"]

EPSILON = 1e-5
"""What is added to the length of features before they are divided by it."""


@dataclass(frozen=True)
class MarkedFeatures:
    """Features of images, and the classes that each shows."""

    vector: Float[Tensor, "n d"]
    """Features x / (‖x‖ + 1e-5), on the CPU."""

    mark: Int8[Tensor, "n c"]
    """1 where an image shows a class, 0 where that is difficult to see, −1 where it does not."""

    classes: tuple[str, ...]
    """Names of the classes."""


def deepest(encoder: FrozenEncoder) -> tuple[FrozenEncoder, str]:
    """The encoder as linear SVMs read it, and its features in words.

    The whole image is squeezed to the side of the encoder's view, without a crop (`Straight`). The deepest map is
    averaged to 2 × 2 places: at 224 pixels by the 6 × 6 windows, one apart, of the published protocol, which makes
    8,192 numbers of a ResNet-50; at other sizes by quarters of the map (`grid_pool`). A backbone that shows no maps, or
    whose features are more numbers than that, as raw pixels are, is read by its features.
    """
    view = encoder.view if isinstance(encoder.view, Straight) else Straight(encoder.view)
    there = next(encoder.backbone.parameters(), torch.empty(0)).device
    example = torch.zeros(1, len(view.channels), view.size, view.size, device=there)
    as_it_is = replace(encoder, view=view), f"pooled features: {encoder.width} numbers"
    try:
        with torch.no_grad(), in_evaluation(encoder.backbone):
            high, wide = maps(encoder.backbone, example)[-1].shape[2:]
    except UserError:
        return as_it_is
    backbone = AtDepth(encoder.backbone, -1, grid_pool(GRIDS[-1], high, wide), example).eval()
    if backbone.width < encoder.width:
        return as_it_is
    return replace(encoder, backbone=backbone, view=view), f"deepest map at 2 x 2 places: {backbone.width} numbers"


def marked(encoder: FrozenEncoder, source: Source, work: Work) -> MarkedFeatures:
    """Features and marks of the images of a source, cached. Of a source with one class an image those without a class
    are left out. Raises `UserError` where no image shows a class.
    """
    count = len(source)
    if marks_in(source) is None:
        known = (labels_of(source) >= 0).nonzero().squeeze(1)
        source = source if len(known) == len(source) else SourceSubset(source, known)
    mark = marks_of(source)
    if not (mark == 1).any():
        raise UserError(
            f"none of the {count} images is known to show a class: put each class in a folder of its own, name"
            " classes in a list file (one an image) or in a table (.csv, several an image)"
        )
    vector = finite_features(encoder, source, work)
    vector = vector / (torch.linalg.vector_norm(vector, dim=1, keepdim=True) + EPSILON)
    names = source.classes or tuple(str(number) for number in range(mark.shape[1]))
    return MarkedFeatures(vector, mark, names)
