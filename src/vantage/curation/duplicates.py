"""Images that may be the same picture, within a set and between two.

n: images   q: images of another set   d: width of the features   k: neighbors   p: pairs
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from vantage.curation.neighbors import NEAREST, SAME, NearestImages, neighbors_among, neighbors_of
from vantage.measures.neighbors import cosines
from vantage.progress import Progress

__all__ = [
    "ALIKE",
    "FLOOR",
    "Duplicates",
    "Leaks",
    "groups",
    "leaks",
    "near_duplicates",
    "ratio_to_nearest",
    "various_pairs",
]

ALIKE = 0.25
"""Two images are near-duplicates up to this ratio; see `near_duplicates`."""

FLOOR = 0.25
"""No image counts as nearer to its neighbors than this share of the median, so that images with many copies, whose
neighbors are all copies, are not missed."""


@dataclass(frozen=True)
class Duplicates:
    """Pairs of images that may be the same picture."""

    limit: float
    """The ratio up to which a pair counts; see `near_duplicates`."""
    pair: Int[Tensor, "p 2"]
    """Both numbers, the smaller first; the surest pairs first. A pair is here if one is among the neighbors of the
    other."""
    distance: Float[Tensor, "p"]
    """Their distance (1 − cosine)."""
    ratio: Float[Tensor, "p"]
    """Their distance divided by the typical distance of neighbors there, by the rule of `near_duplicates`."""
    same: bool
    """Whether most images have the same features as another, so that pairs mean nothing."""


@dataclass(frozen=True)
class Leaks:
    """The nearest image of a set for each image of another."""

    number: Int[Tensor, "q"]
    """Its number."""
    distance: Float[Tensor, "q"]
    """Its distance (1 − cosine)."""
    ratio: Float[Tensor, "q"]
    """That distance divided by the typical distance of neighbors there, by the rule of `near_duplicates`."""
    same: bool
    """Whether most images of the other set have the same features as their nearest."""


def near_duplicates(neighbors: NearestImages, limit: float = ALIKE) -> Duplicates:
    """Pairs that are much closer than neighbors usually are: at most `limit` times as far apart as each of the two is
    from its neighbors on average. That average counts as at least a quarter of its median over all images.

    The averages tell what is near in each region of the feature space, so one rule holds for dense and sparse ones.
    """
    number = neighbors.number
    ratio = _ratio(neighbors.distance, (scale := _scale(neighbors))[:, None], scale[number])
    rows, columns = (ratio <= limit).nonzero(as_tuple=True)
    pair = torch.stack([rows, number[rows, columns]], 1).sort(1).values
    value, order = ratio[rows, columns].sort(stable=True)
    _, first = np.unique(pair[order].numpy(), axis=0, return_index=True)
    unique = torch.from_numpy(np.sort(first))
    distance = neighbors.distance[rows, columns][order]
    return Duplicates(limit, pair[order][unique], distance[unique], value[unique], neighbors.same)


def groups(duplicates: Duplicates, neighbors: NearestImages, vector: Float[Tensor, "n d"]) -> Int[Tensor, "n"]:
    """The number of each image's group: images that chains of near-duplicates connect are one group. −1 for an image
    without a near-duplicate. Groups are numbered by their surest pair, the surest first.

    Chains are complete: an image whose neighbors are all near-duplicates may have more of them, so it is compared with
    all images once more.
    """
    label, scale = _join_labels(torch.arange(len(vector)), duplicates.pair), _scale(neighbors)
    last = neighbors.distance[:, -1]
    full = (_ratio(last, scale, scale) <= duplicates.limit).nonzero().squeeze(1)
    for start, first, cosine in cosines(vector, vector[full.to(vector.device)]):
        rows, columns = full[start : start + len(cosine)], slice(first, first + cosine.shape[1])
        ratio = _ratio((1 - cosine.cpu()).clamp(min=0), scale[rows][:, None], scale[None, columns])
        row, column = ((ratio <= duplicates.limit) & (label[rows][:, None] != label[columns])).nonzero(as_tuple=True)
        if len(row):
            label = _join_labels(label, torch.stack([rows[row], column + first], 1))
    size = label.bincount()
    order = dict.fromkeys(label[duplicates.pair[:, 0]].tolist())
    number = torch.full((len(size),), -1)
    number[torch.tensor(list(order), dtype=torch.int64)] = torch.arange(len(order))
    return number[label]


def various_pairs(duplicates: Duplicates, n: int, count: int) -> list[int]:
    """Positions of at most `count` pairs to look at, among `n` images: the surest pair of each chain of pairs first,
    so that one picture with many copies does not take all places."""
    if not len(duplicates.pair):
        return []
    chain = _join_labels(torch.arange(n), duplicates.pair)[duplicates.pair[:, 0]].tolist()
    first = list({one: place for place, one in reversed(list(enumerate(chain)))}.values())
    others = sorted(set(range(len(chain))) - set(first))
    return (sorted(first) + others)[:count]


def leaks(vector: Float[Tensor, "n d"], query: Float[Tensor, "q d"], progress: Progress | None = None) -> Leaks:
    """The nearest image for each image of another set. Ratios are by the rule of `near_duplicates`, with the neighbors
    that either image has in the first set."""
    near = neighbors_among(vector, query, NEAREST, progress)
    numbers, place = near.number[:, 0].unique(return_inverse=True)
    of_nearest = neighbors_of(vector, NEAREST, progress, numbers)
    distance = near.distance[:, 0]
    return Leaks(near.number[:, 0], distance, _ratio(distance, _scale(near), _scale(of_nearest)[place]), near.same)


def ratio_to_nearest(neighbors: NearestImages) -> Float[Tensor, "n"]:
    """The ratio of each image and its nearest neighbor, by the rule of `near_duplicates`."""
    scale = _scale(neighbors)
    return _ratio(neighbors.distance[:, 0], scale, scale[neighbors.number[:, 0]])


def _scale(neighbors: NearestImages) -> Float[Tensor, "n"]:
    """Mean distance of each image to its neighbors, but at least a share of the median."""
    mean = neighbors.distance.mean(1)
    return mean.clamp(min=FLOOR * float(mean.median()))


def _ratio(
    distance: Float[Tensor, "*pairs"], scale: Float[Tensor, "*one"], other: Float[Tensor, "*two"]
) -> Float[Tensor, "*pairs"]:
    """Distances divided by the smaller scale of the two images; 0 if features are the same."""
    return (distance / torch.minimum(scale, other).clamp(min=SAME)).masked_fill_(distance <= SAME, 0)


def _join_labels(label: Int[Tensor, "n"], pair: Int[Tensor, "p 2"]) -> Int[Tensor, "n"]:
    """New labels, counted from 0, in which the labels of each pair of images are merged."""
    one, other = label[pair].unbind(1)
    count = int(label.max()) + 1
    graph = coo_array((np.ones(len(one), bool), (one.numpy(), other.numpy())), (count, count))
    _, component = connected_components(graph, directed=False)
    return torch.from_numpy(component.astype(np.int64))[label]
