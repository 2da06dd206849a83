"""The clusters that a run made of its training images, if one of its memories makes any.

n: images of a source   m: images that the run was trained on
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from vantage.data.sources.source import Source
from vantage.data.sources.subset import SourceSubset
from vantage.errors import UserError
from vantage.frozen.networks import trained_networks
from vantage.memory.labeled_rows import LabeledRows
from vantage.training.images import training_part

__all__ = ["Clusters", "clusters_of"]


@dataclass(frozen=True)
class Clusters:
    """The clusters of a run's first memory that makes any."""

    label: Int[Tensor, "n"] | None
    """Cluster of each image of the source; −1 for images that were not trained on; None if `problem` says why."""
    problem: str = ""
    """Why there are no clusters to show, although the run makes some."""

    def largest(self, count: int) -> list[tuple[int, int]]:
        """The largest clusters, as (number, size)."""
        if self.label is None:
            return []
        numbers, sizes = self.label[self.label >= 0].unique(return_counts=True)
        order = sizes.argsort(descending=True, stable=True)[:count]
        return list(zip(numbers[order].tolist(), sizes[order].tolist(), strict=True))


def clusters_of(folder: Path, source: Source) -> Clusters | None:
    """The clusters in the newest checkpoint of a run, for the images of a source. With several clusterings, the first.
    None if the run makes no clusters. Raises `UserError` if the checkpoint is damaged."""
    networks = trained_networks(folder)
    stores = [networks.learner.store(number) for number in range(len(networks.run.branches))]
    labels = [store.label for store in stores if isinstance(store, LabeledRows)]
    if not labels:
        return None
    label = labels[0] if labels[0].ndim == 1 else labels[0][:, 0]
    if label.unique().numel() in (1, len(label)):
        return Clusters(None, "The memory has not been clustered yet: its first clustering comes later in training.")
    try:
        part = training_part(source, networks.run.data)
    except UserError:  # too few images
        return Clusters(None, _others(networks.images))
    if len(part) != len(label) or (networks.fingerprint and part.fingerprint() != networks.fingerprint):
        return Clusters(None, _others(networks.images))
    numbers = part.numbers if part is not source and isinstance(part, SourceSubset) else torch.arange(len(source))
    return Clusters(torch.full((len(source),), -1).index_copy(0, numbers, label))


def _others(images: int) -> str:
    return (
        f"The clusters are of the {images:,} images that the run was trained on, and --data names others. Name those "
        "images to see the clusters."
    )
