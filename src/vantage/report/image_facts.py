"""What the features show about images: the queries with the best and worst neighbors, and the spectrum.

n: images   d: width of the features
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage.curation.neighbors import NearestImages
from vantage.measures import effective_rank

__all__ = ["Spectrum", "best_and_worst", "spectrum"]


@dataclass(frozen=True)
class Spectrum:
    """In how many directions the features vary."""

    share: list[float]
    """Share of the variance along each principal direction, largest first; zeros if all features are equal."""
    rank: float
    """Effective rank of the features, scaled to unit length; see `vantage.measures.effective_rank`."""

    @property
    def most(self) -> int:
        """Number of directions that hold 90 % of the variance."""
        sums = torch.tensor(self.share, dtype=torch.float64).cumsum(0)
        return int((sums < 0.9 * sums[-1]).sum()) + 1 if len(sums) and sums[-1] > 0 else 0


def best_and_worst(
    neighbors: NearestImages, label: Int[Tensor, "n"], count: int, exclude: set[int] | None = None
) -> tuple[list[int], list[int]]:
    """Indices of the `count` queries with the best neighbors, and of those with the worst.

    With labels (−1: none), the best have the most neighbors of their own class; the worst have the fewest. Ties go to
    the nearest neighbors: near ones of another class are the surest mistakes. Both lists take one per class in turn.
    Without labels, the best have the nearest neighbors and the worst the farthest. Images in `exclude`, such as
    near-duplicates, whose nearest neighbor is trivial, are never among the best.
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
    best[sorted(exclude or ())] = torch.inf
    return _in_turn(best, classes, count), _in_turn(worst, classes, count)


def spectrum(vector: Float[Tensor, "n d"]) -> Spectrum:
    """Variance along each principal direction, and the effective rank."""
    outer, total = torch.zeros(vector.shape[1], vector.shape[1], dtype=torch.float64), 0.0
    unit, mean = torch.zeros_like(outer), vector.double().mean(0)
    for part in vector.split(4096):
        deviations = part.double() - mean
        outer += deviations.T @ deviations
        unit_rows = torch.nn.functional.normalize(part.double(), dim=1)
        unit += unit_rows.T @ unit_rows
    variance = torch.linalg.eigvalsh(outer).clamp(min=0).flip(0)
    total = float(variance.sum())
    even = total > 1e-12 * float(mean.square().sum()) * len(vector)  # more than the rounding error of equal features
    share = variance / total if even else torch.zeros_like(variance)
    return Spectrum(share.tolist(), effective_rank(unit))


def _in_turn(cost: Float[Tensor, "n"], classes: Int[Tensor, "n"], count: int) -> list[int]:
    """The indices with the lowest finite cost, one of each class in turn."""
    order = [number for number in cost.argsort(stable=True).tolist() if bool(cost[number] < torch.inf)]
    turn: dict[int, int] = {}
    by_turn = []
    for place, number in enumerate(order):
        class_number = int(classes[number])
        by_turn.append((turn.get(class_number, 0), place, number))
        turn[class_number] = turn.get(class_number, 0) + 1
    return [number for _, _, number in sorted(by_turn)[:count]]
