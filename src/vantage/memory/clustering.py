"""One clustering of a bank, updated as its rows move: running sums, and the repair of clusters that became too small.

m: rows   k: clusters   d: width
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vantage import draws
from vantage.memory.kmeans import Closeness, add_rows, halves, nearest, sums
from vantage.memory.rows import Rows
from vantage.records.members import Members

__all__ = ["Clustering"]


@dataclass(eq=False)
class Clustering:
    """One clustering of a bank's rows with its running sums. It holds the bank's own tensors, and its methods change
    them in place."""

    vector: Float[Tensor, "m d"] | Rows
    """The rows, which are only read."""

    label: Int[Tensor, "m"]
    """Cluster of each row."""

    centroid: Float[Tensor, "k d"]
    """The center of each cluster; may lag behind the mean of its rows."""

    total: Float[Tensor, "k d"]
    """Sum of each cluster's rows."""

    count: Int[Tensor, "k"]
    """Number of each cluster's rows."""

    members: Members = field(default_factory=Members)
    """The index of rows by label, which follows each move."""

    def recount(self) -> None:
        """Recomputes sums and counts from all rows, so that rounding errors do not accumulate."""
        total, times = sums(self.label, self.vector, len(self.count), self.total.dtype)
        self.total.copy_(total)
        self.count.copy_(times)

    def move(
        self,
        row: Int[Tensor, "r"],
        label: Int[Tensor, "r"],
        previous: Float[Tensor, "r d"] | None = None,
        first: Bool[Tensor, "r"] | None = None,
    ) -> None:
        """Give rows new labels. If the rows have been written since they were counted, `previous` holds their earlier
        values. If rows are repeated, `first` marks the copy that counts."""
        new, old_label = self.vector[row], self.label[row]
        old, places = new if previous is None else previous, torch.cat([old_label, label])
        if first is not None:
            old, new = (torch.where(first[:, None], rows, 0.0) for rows in (old, new))
        add_rows(self.total, places, torch.cat([-old, new]))
        one = torch.ones_like(label) if first is None else first.long()
        self.count.index_add_(0, places, torch.cat([-one, one]))
        self.members.move(self.label, row, label)

    def refresh(self) -> None:
        """Move every centroid to the mean of its rows; the centroid of an empty cluster stays."""
        mean = self.total / self.count.clamp(min=1)[:, None]
        self.centroid.copy_(torch.where(self.count[:, None] > 0, mean, self.centroid))

    def mend(self, smallest: int, closeness: Closeness, seed: int) -> None:
        """Dissolve clusters of fewer than `smallest` rows, as InterCLR's release does in every iteration.

        Their rows go to the nearest centroid of the other clusters. Then, once for each emptied cluster, the largest
        cluster is split in two. If all clusters are small, nothing is done. A half may itself be too small; the next
        call handles it. On a GPU the host waits once for the sizes of the clusters and, if some are small, once more
        for the size of the largest after their rows have moved.
        """
        if smallest < 1:
            return
        sizes = self.count.cpu()
        small = sizes < smallest
        if not bool(small.any()) or bool(small.all()):
            return
        device, rows = self.label.device, int(sizes[small].sum())
        large = (~small).nonzero()[:, 0].to(device, non_blocking=True)
        if rows:
            row = small.to(device, non_blocking=True)[self.label].nonzero_static(size=rows)[:, 0]
            self.move(row, large[nearest(self.vector[row], self.centroid[large], closeness)[0]])
        most = int(self.count.max())
        if most > 1:
            for number in small.nonzero()[:, 0].tolist():
                self._split(number, most, draws.mix(seed, number))

    def _split(self, empty: int, most: int, seed: int) -> None:
        """Split the largest cluster by 2-means and move one part to an empty cluster; if all rows are alike, move a
        random half.

        The host knows only that there are at most `most` rows, so `row` has that length; entries beyond `size` repeat
        the first row and do not count.
        """
        size, largest = self.count.max(0)
        other = torch.full_like(largest, empty)
        slot = torch.arange(most, device=largest.device)
        valid = slot < size
        slot = torch.where(valid, slot, 0)
        row = (self.label == largest).nonzero_static(size=most)[slot, 0]
        order = draws.permutation(most, seed).to(row.device, non_blocking=True)
        order = torch.where(valid, order, most).argsort(stable=True).argsort(stable=True)  # of valid rows only
        second = halves(self.vector[row], order[:2], 20, valid)
        alike = (second | ~valid).all() | ~second.any()
        second = torch.where(alike, order < size // 2, second)
        self.move(row, torch.where(second, other, largest)[slot], first=second)
        pair = torch.stack([largest, other])
        mean = (self.total[pair] / self.count[pair].clamp(min=1)[:, None]).to(self.centroid.dtype)
        self.centroid[pair] = torch.where(second.any(), mean, self.centroid[pair])  # a single row is not split
