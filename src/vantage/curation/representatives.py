"""Some images that stand for all: those to label first.

n: images   d: width of the features   r: representatives
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from vantage import draws
from vantage.errors import UserError
from vantage.memory.kmeans import kmeans
from vantage.memory.kmeans import nearest as nearest_centroid

__all__ = ["Representatives", "check_count", "cluster_centers", "k_centers"]

SAMPLE_EACH, SAMPLE_LEAST = 256, 50_000
"""k-means sees this many images for each cluster, and at least this many in all; others join the nearest cluster."""


@dataclass(frozen=True)
class Representatives:
    """Images that stand for all."""

    number: Int[Tensor, "r"]
    """Their numbers, in the order in which to label them."""
    distance: Float[Tensor, "r"]
    """k-center: distance (1 − cosine) to the nearest one before it; 0 for the first. Clusters: distance to the center
    of its cluster."""
    coverage: Int[Tensor, "r"]
    """How many images are nearer to it than to any other (k-center), or in its cluster."""


def check_count(count: int, images: int) -> None:
    """Raises `UserError` for more representatives than images, or none."""
    if not 1 <= count <= images:
        raise UserError(f"{count} representatives of {images:,} images: ask for 1 to {images:,}")


def k_centers(vector: Float[Tensor, "n d"], count: int, first: Int[Tensor, "c"] | None = None) -> Representatives:
    """The image nearest to the mean direction, then always the one that is farthest from all before it (k-center
    greedy, Gonzalez 1985; for labeling, Sener and Savarese, arXiv 1708.00489). The `first` images come first.

    The greatest distance of any image to its representative is at most about twice the smallest possible. Holds a few
    numbers for each image besides the features. Raises `UserError` for more representatives than images.
    """
    check_count(count, len(vector))
    begin = _nearest_to_mean(vector) if first is None or not len(first) else first
    close = torch.full((len(vector),), -torch.inf, device=vector.device)
    owner = torch.zeros(len(vector), dtype=torch.int64, device=vector.device)
    numbers, gaps = [], []
    for turn in range(count):
        number = int(begin[turn]) if turn < len(begin) else int(close.argmin())
        gaps.append(float((1 - close[number]).clamp(min=0)) if turn else 0.0)
        cosine = _cosines(vector, vector[number])
        nearer = cosine > close
        close, owner = torch.where(nearer, cosine, close), owner.masked_fill(nearer, turn)
        close[number], owner[number] = torch.inf, turn  # never chosen again, even among copies
        numbers.append(number)
    return Representatives(torch.tensor(numbers), torch.tensor(gaps), owner.bincount(minlength=count).cpu())


def cluster_centers(vector: Float[Tensor, "n d"], count: int, seed: int = 0) -> Representatives:
    """The image nearest to the center of each of `count` clusters (k-means of unit features), the largest cluster
    first. If clusters end up empty, k-center's choices take their place.

    k-means sees at most 256 images for each cluster (or 50,000 in all, if that is more), drawn with `seed`;
    every image then belongs to the nearest center. Raises `UserError` for more representatives than images.
    """
    check_count(count, len(vector))
    most = max(SAMPLE_LEAST, SAMPLE_EACH * count)
    order = draws.permutation(len(vector), seed)[:most].sort().values
    _, centroid = kmeans(normalize(vector[order.to(vector.device)].float(), dim=1), count, seed)
    parts = []
    for unit in _unit_parts(vector):
        label, _ = nearest_centroid(unit, centroid)
        cosine = (unit * normalize(centroid[label], dim=1)).sum(1)
        parts.append((label.cpu(), cosine.cpu()))
    label, cosine = (torch.cat(each) for each in zip(*parts, strict=True))
    order = torch.from_numpy(np.lexsort((-cosine.numpy(), label.numpy())))  # by cluster, then from its center outwards
    unique, size = label[order].unique_consecutive(return_counts=True)
    first = order[size.cumsum(0) - size]
    largest = size.argsort(descending=True, stable=True)
    number, coverage = first[largest], size[largest]
    if len(unique) < count:
        number = k_centers(vector, count, number).number
        coverage = torch.cat([coverage, torch.ones(count - len(unique), dtype=torch.int64)])
    distance = (1 - cosine[number]).clamp(min=0)
    return Representatives(number, distance, coverage)


def _unit_parts(vector: Float[Tensor, "n d"]) -> Iterator[Float[Tensor, "_ d"]]:
    return (normalize(part.float(), dim=1) for part in vector.split(16_384))


def _cosines(vector: Float[Tensor, "n d"], one: Float[Tensor, "d"]) -> Float[Tensor, "n"]:
    direction = normalize(one.float(), dim=0)
    return torch.cat([unit @ direction for unit in _unit_parts(vector)])


def _nearest_to_mean(vector: Float[Tensor, "n d"]) -> Int[Tensor, "1"]:
    mean = torch.stack([unit.double().sum(0) for unit in _unit_parts(vector)]).sum(0).float()
    return _cosines(vector, mean).argmax()[None].cpu()
