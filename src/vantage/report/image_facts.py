"""What the features of images say: nearest neighbors, the best and worst of them, spectrum, near-duplicates, outliers.

n: images   d: width of the features   k: neighbors
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage.measures import effective_rank, nearest

__all__ = [
    "Duplicates",
    "Neighbors",
    "Outliers",
    "Spectrum",
    "best_and_worst",
    "near_duplicates",
    "neighbors_of",
    "outliers",
    "spectrum",
]

ALIKE = 0.1
"""Two images are near-duplicates up to this share of the median distance between an image and its nearest neighbor."""

SAME = 1e-5
"""Distances up to this are rounding: the features are the same."""


@dataclass(frozen=True)
class Neighbors:
    """The nearest images of every image, itself left out."""

    cosine: Float[Tensor, "n k"]
    """Cosines of the features, nearest first."""
    number: Int[Tensor, "n k"]
    """Numbers of the images."""

    @property
    def distance(self) -> Float[Tensor, "n k"]:
        """1 − cosine."""
        return (1 - self.cosine).clamp(min=0)


@dataclass(frozen=True)
class Duplicates:
    """Pairs of images that may be the same picture."""

    limit: float
    """The distance (1 − cosine) up to which a pair counts."""
    pairs: list[tuple[int, int, float]]
    """Both numbers and the distance, nearest first; a pair is found if one is among the neighbors of the other."""
    same: bool
    """Whether most images have the same features as another, so that no pair says anything."""


@dataclass(frozen=True)
class Outliers:
    """How far every image is from the others."""

    score: Float[Tensor, "n"]
    """Mean distance (1 − cosine) to its neighbors."""
    limit: float
    """The score above which an image counts as an outlier: the upper quartile and three times the range between the
    quartiles (Tukey's outer fence)."""
    number: list[int]
    """All images, the farthest first."""

    @property
    def count(self) -> int:
        """How many images are above the limit."""
        return int((self.score > self.limit).sum())


@dataclass(frozen=True)
class Spectrum:
    """In how many directions features vary."""

    share: list[float]
    """Share of the variance along each principal direction, largest first; zeros if all features are equal."""
    rank: float
    """Effective rank of the features, scaled to unit length; see `vantage.measures.effective_rank`."""

    @property
    def most(self) -> int:
        """Directions that hold 90 % of the variance."""
        sums = torch.tensor(self.share, dtype=torch.float64).cumsum(0)
        return int((sums < 0.9 * sums[-1]).sum()) + 1 if len(sums) and sums[-1] > 0 else 0


def neighbors_of(vector: Float[Tensor, "n d"], k: int = 10) -> Neighbors:
    """The k nearest images of every image by the cosine of their features (fewer if there are fewer): exact, in tables
    of bounded size."""
    k, start, cosines, numbers = min(k, len(vector) - 1), 0, [], []
    for cosine, number in nearest(vector, vector, k + 1):
        own = torch.arange(start, start + len(number))[:, None]
        others = number != own
        others[others.all(1), -1] = False  # more than k images are as near as the image itself
        cosines.append(cosine[others].view(-1, k))
        numbers.append(number[others].view(-1, k))
        start += len(number)
    return Neighbors(torch.cat(cosines), torch.cat(numbers))


def best_and_worst(
    neighbors: Neighbors, label: Int[Tensor, "n"], count: int, excluded: set[int] | None = None
) -> tuple[list[int], list[int]]:
    """Numbers of the `count` queries with the best and with the worst neighbors.

    With labels (−1: none): best are those with the most neighbors of their own class, then the nearest neighbors; worst
    are those with the fewest, then the nearest neighbors, since these are the surest mistakes. Both take one image of
    each class in turn. Without labels: those with the nearest and the farthest neighbors. `excluded` images, such as
    near-duplicates, whose nearest neighbor is trivial, are not among the best.
    """
    mean = neighbors.cosine.mean(1)
    labeled = label >= 0
    if bool(labeled.any()):
        right = (label[neighbors.number] == label[:, None]).double().mean(1)
        best, worst = -(right + 1e-3 * mean), right - 1e-3 * mean
        best[~labeled], worst[~labeled] = torch.inf, torch.inf
        classes = label
    else:
        best, worst, classes = -mean.double(), mean.double(), torch.zeros_like(label)
    best = best.clone()
    best[sorted(excluded or ())] = torch.inf
    return _in_turn(best, classes, count), _in_turn(worst, classes, count)


def near_duplicates(neighbors: Neighbors) -> Duplicates:
    """Pairs whose distance is at most a tenth of the median distance between an image and its nearest neighbor."""
    distance = neighbors.distance
    median = float(distance[:, 0].median())
    limit = max(SAME, ALIKE * median)
    rows, columns = (distance <= limit).nonzero(as_tuple=True)
    pairs: dict[tuple[int, int], float] = {}
    for row, other, gap in zip(
        rows.tolist(), neighbors.number[rows, columns].tolist(), distance[rows, columns].tolist(), strict=True
    ):
        pairs.setdefault((min(row, other), max(row, other)), gap)
    ordered = sorted((gap, *pair) for pair, gap in pairs.items())
    return Duplicates(limit, [(one, other, gap) for gap, one, other in ordered], median <= SAME)


def outliers(neighbors: Neighbors) -> Outliers:
    """Images by their mean distance to their neighbors."""
    score = neighbors.distance.mean(1)
    low, high = score.double().quantile(torch.tensor([0.25, 0.75], dtype=torch.float64)).tolist()
    return Outliers(score, high + 3 * (high - low), score.argsort(descending=True, stable=True).tolist())


def spectrum(vector: Float[Tensor, "n d"]) -> Spectrum:
    """Variance along the principal directions, and the effective rank."""
    outer, total = torch.zeros(vector.shape[1], vector.shape[1], dtype=torch.float64), 0.0
    unit, mean = torch.zeros_like(outer), vector.double().mean(0)
    for part in vector.split(4096):
        centered = part.double() - mean
        outer += centered.T @ centered
        scaled = torch.nn.functional.normalize(part.double(), dim=1)
        unit += scaled.T @ scaled
    variance = torch.linalg.eigvalsh(outer).clamp(min=0).flip(0)
    total = float(variance.sum())
    even = total > 1e-12 * float(mean.square().sum()) * len(vector)  # more than the rounding of equal features
    share = variance / total if even else torch.zeros_like(variance)
    return Spectrum(share.tolist(), effective_rank(unit))


def _in_turn(cost: Float[Tensor, "n"], classes: Int[Tensor, "n"], count: int) -> list[int]:
    """The numbers with the lowest finite cost, one of each class in turn."""
    order = [number for number in cost.argsort(stable=True).tolist() if bool(cost[number] < torch.inf)]
    turn: dict[int, int] = {}
    keyed = []
    for place, number in enumerate(order):
        kind = int(classes[number])
        keyed.append((turn.get(kind, 0), place, number))
        turn[kind] = turn.get(kind, 0) + 1
    return [number for _, _, number in sorted(keyed)[:count]]
