"""The features that linear SVMs are trained on: the deepest map of a backbone, pooled to two by two positions.

n: images   d: width of the features   c: classes
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int8
from torch import Tensor

from vantage.data.sources.source import Source, distinct_classes, labels_of, marks_in, marks_of
from vantage.data.sources.subset import SourceSubset
from vantage.encoders.backbones.depths import GRIDS, AtDepth, example_maps, grid_pool
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.linear.depths import example_of
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.labeled_features import finite_features
from vantage.views.evaluation import Straight

__all__ = ["EPSILON", "MarkedFeatures", "deepest", "marked_features"]

EPSILON = 1e-5
"""Added to the length of a feature vector before the vector is divided by it."""


@dataclass(frozen=True)
class MarkedFeatures:
    """Features of images, and the classes that each image shows."""

    vector: Float[Tensor, "n d"]
    """Features x / (‖x‖ + 1e-5), on the CPU."""

    mark: Int8[Tensor, "n c"]
    """1 where an image shows a class, 0 where the class is difficult to see, −1 where the image does not show it."""

    classes: tuple[str, ...]
    """Names of the classes, all different."""


def deepest(encoder: FrozenEncoder) -> tuple[FrozenEncoder, str]:
    """The encoder whose features linear SVMs are trained on, and those features in words.

    The whole image is squeezed to the side of the encoder's view, without a crop (`Straight`). The deepest map is
    averaged to 2 × 2 positions: at 224 pixels over the published protocol's 6 × 6 windows at stride 1, which gives
    8,192 numbers for a ResNet-50; at other sizes over quarters of the map (`grid_pool`). A backbone without maps, or
    with longer features than that (raw pixels), keeps its own features.
    """
    view = encoder.view if isinstance(encoder.view, Straight) else Straight(encoder.view)
    example = example_of(encoder)
    pooled_features = replace(encoder, view=view), f"pooled features: {encoder.width} numbers"
    try:
        height, width = example_maps(encoder.backbone, example)[-1].shape[2:]
    except UserError:
        return pooled_features
    backbone = AtDepth(encoder.backbone, -1, grid_pool(GRIDS[-1], height, width), example).eval()
    if backbone.width < encoder.width:
        return pooled_features
    return replace(encoder, backbone=backbone, view=view), f"deepest map at 2 x 2 places: {backbone.width} numbers"


def marked_features(encoder: FrozenEncoder, source: Source, work: Work) -> MarkedFeatures:
    """Features and marks of the images of a source, cached. If images have one class each, those without a class are
    left out. Raises `UserError` if no image shows a class.
    """
    count = len(source)
    if marks_in(source) is None:
        rows = (labels_of(source) >= 0).nonzero().squeeze(1)
        source = source if len(rows) == len(source) else SourceSubset(source, rows)
    mark = marks_of(source)
    if not (mark == 1).any():
        raise UserError(
            f"none of the {count} images is known to show a class: put each class in its own folder, or name the"
            " classes in a list file (one per image) or in a table (.csv, several per image)"
        )
    vector = finite_features(encoder, source, work)
    vector = vector / (torch.linalg.vector_norm(vector, dim=1, keepdim=True) + EPSILON)
    names = distinct_classes(source) or tuple(str(number) for number in range(mark.shape[1]))
    return MarkedFeatures(vector, mark, names)
