"""Features of the labeled images of a source, as protocols read them.

n: images   d: width of the features
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from vantage.data.sources.source import Source, class_count
from vantage.data.splits import with_labels
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.feature_cache import features_of

__all__ = ["LabeledFeatures", "finite_features", "labeled_features"]


@dataclass(frozen=True)
class LabeledFeatures:
    """Features of labeled images, on the device of the work."""

    vector: Float[Tensor, "n d"]
    """Features as the backbone gives them."""

    label: Int[Tensor, "n"]
    """Label of each, from 0."""

    classes: int
    """Number of classes of the source, whether or not an image shows them."""

    @property
    def count(self) -> int:
        """How many images there are."""
        return len(self.label)


def labeled_features(encoder: FrozenEncoder, source: Source, work: Work) -> LabeledFeatures:
    """Features of the labeled images of a source, cached. Raises `UserError` if there are none."""
    part, label = with_labels(source)
    device, classes = work.resolved_device(), class_count(label, source)
    return LabeledFeatures(finite_features(encoder, part, work).to(device), label.to(device), classes)


def finite_features(encoder: FrozenEncoder, source: Source, work: Work) -> Float[Tensor, "n d"]:
    """Features of every image, cached. Raises `UserError` if one is not finite."""
    vector = features_of(encoder, source, work)
    if not all(bool(part.isfinite().all()) for part in vector.split(4096)):
        raise UserError(f"features of {encoder.name} are not all finite: the network diverged; take another checkpoint")
    return vector
