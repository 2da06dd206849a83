"""One clustering of a bank, kept up to date row by row: running sums, and clusters that became too small.

m: rows   k: clusters   d: width
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage import draws
from vantage.members import Members
from vantage.memory.kmeans import Closeness, kmeans, nearest, sums

__all__ = ["Clustering"]


@dataclass(frozen=True)
class Clustering:
    """One clustering of a bank's rows with its running sums; every method changes these tensors in place."""

    vector: Float[Tensor, "m d"]
    """The rows, which are only read."""

    label: Int[Tensor, "m"]
    """Cluster of each row."""

    centroid: Float[Tensor, "k d"]
    """Where each cluster is taken to be; may lag behind the mean of its rows."""

    total: Float[Tensor, "k d"]
    """Sum of each cluster's rows."""

    count: Int[Tensor, "k"]
    """Number of each cluster's rows."""

    members: Members = field(default_factory=Members)
    """The index of rows by label, which follows each move."""

    def recount(self) -> None:
        """Sums and counts anew from all rows, so that rounding does not pile up."""
        self.total.zero_()
        self.count.zero_()
        self.add(self.label, self.vector, 1)

    def add(self, label: Int[Tensor, "r"], vector: Float[Tensor, "r d"], sign: int) -> None:
        """Count rows in (+1) or out (−1)."""
        unique, total, times = sums(label, vector.to(self.total.dtype))
        self.total[unique] += sign * total
        self.count[unique] += sign * times

    def move(self, row: Int[Tensor, "r"], label: Int[Tensor, "r"]) -> None:
        """Give rows other labels."""
        vector = self.vector[row]
        self.add(self.label[row], vector, -1)
        self.add(label, vector, 1)
        self.members.move(self.label, row, label)

    def refresh(self) -> None:
        """Every centroid to the mean of its rows; that of an empty cluster stays."""
        mean = self.total / self.count.clamp(min=1)[:, None]
        self.centroid.copy_(torch.where(self.count[:, None] > 0, mean, self.centroid))

    def mend(self, smallest: int, closeness: Closeness, seed: int) -> None:
        """Dissolve clusters of fewer than `smallest` rows, as InterCLR's release does in every iteration.

        Their rows go to the nearest centroid of the others; then the largest cluster is split in two, once for each
        emptied one. Where all clusters are small there is nowhere to go, and nothing is done. A half may itself be
        small: the next call sees to it.
        """
        small = self.count < smallest
        if bool(small.all()) or not bool(small.any()):
            return
        row, large = small[self.label].nonzero()[:, 0], (~small).nonzero()[:, 0]
        if len(row):
            self.move(row, large[nearest(self.vector[row], self.centroid[large], closeness)[0]])
        for number in small.nonzero()[:, 0].tolist():
            self._split(int(self.count.argmax()), number, draws.mix(seed, number))

    def _split(self, largest: int, empty: int, seed: int) -> None:
        """Half of a cluster's rows, by 2-means, to an empty one; a random half where all rows are alike."""
        row = (self.label == largest).nonzero()[:, 0]
        if len(row) < 2:
            return
        second = kmeans(self.vector[row], 2, seed)[0] == 1
        if bool(second.all()) or not bool(second.any()):
            order = torch.randperm(len(row), generator=torch.Generator().manual_seed(seed)).to(row.device)
            second = order < len(row) // 2
        part = row[second]
        self.move(part, torch.full_like(part, empty))
        for number in (largest, empty):
            self.centroid[number] = self.total[number] / self.count[number]
