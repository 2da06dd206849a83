"""A bank that is reclustered every few epochs.

m: images   b: images of a step   d: width
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vantage import draws
from vantage.memory.bank import Bank
from vantage.memory.first_labels import Apart, FirstLabels
from vantage.memory.host_count import HostCount
from vantage.memory.kmeans import kmeans
from vantage.memory.labeled_rows import LabeledRows, check_first_rows
from vantage.records import Keys
from vantage.schedules.checks import at_least

__all__ = ["ReclusteredBank", "ReclusteredStore"]


@dataclass(frozen=True)
class ReclusteredBank:
    """A bank that is reclustered every few epochs, into several clusterings, as in DeepCluster and local aggregation.

    Labels do not change in between, so they lag behind the rows. Until the first clustering, `start` gives them. Each
    of the clusterings starts from different rows (Zhuang et al., arXiv 1903.12355).
    """

    momentum: float = 0.5
    """Weight on the old row, 0 (replace) to 1 (never change)."""

    clusters: int = 30_000
    """Number of clusters in each clustering."""

    clusterings: int = 10
    """H: number of clusterings. Two images are mates if they share a cluster in any of them."""

    every: int = 1
    """Passes over the images between clusterings."""

    first: int = 1
    """Passes over the images before the first clustering; with 0, features of the untrained network are clustered, as
    by `ClusteredBank(first=0)`."""

    iterations: int = 20
    """Maximum number of iterations of k-means."""

    start: FirstLabels = Apart()
    """Which images share a cluster before the first clustering: `Apart` or `Together`."""

    images_per_cluster: int = 42
    """Images per cluster that `fit` leaves, on average, if it reduces the number of clusters; 42 is that of local
    aggregation."""

    sharded: bool = False
    """Whether each process holds only its share of the rows, as in `Bank`. Every process has all labels."""

    def __post_init__(self) -> None:
        Bank(self.momentum)
        at_least(self, 2, "clusters")
        at_least(self, 1, "clusterings", "every", "iterations", "images_per_cluster")
        at_least(self, 0, "first")

    def stretch(self, longer: float, finer: float) -> "ReclusteredBank":
        """The same bank for a run of `longer` times as many epochs: `first` grows in proportion. It stays at least 1
        unless it is 0."""
        return replace(self, first=max(1, round(self.first * longer)) if self.first else 0)

    def fit_to(self, images: int, batch_size: int) -> "ReclusteredBank":
        """At most one cluster for every `images_per_cluster` images (30,000 for 1.28 million with 42), but at least
        2."""
        return replace(self, clusters=min(self.clusters, max(2, images // self.images_per_cluster)))

    def build(self, images: int, width: int) -> "ReclusteredStore":
        """A bank of random unit vectors. Raises `UserError` for more clusters than images."""
        return ReclusteredStore(images, width, self)


class ReclusteredStore(LabeledRows):
    """The store of `ReclusteredBank`; its rows and labels are saved in checkpoints."""

    begun: Tensor

    def __init__(self, images: int, width: int, choice: ReclusteredBank) -> None:
        super().__init__(images, width, choice.clusters, choice.clusterings, choice.sharded)
        self.choice, self.host_begun, self.host_seed = choice, HostCount(), HostCount()
        self.label.copy_(choice.start.of(torch.arange(images))[:, None].expand_as(self.label))
        if choice.first == 0:
            self.register_buffer("begun", torch.zeros((), dtype=torch.bool))

    @property
    def waits(self) -> bool:
        """Whether the bank still needs the untrained network's vectors (`begin`)."""
        return self.choice.first == 0 and not self.host_begun.at_least(self.begun, 1)

    @torch.no_grad()
    def begin(self, keys: Keys) -> None:
        """Take these vectors as the rows and cluster them at once, as after `first` passes. The first of the
        clusterings is the one that `OnlineStore.begin` would make."""
        self.vector.copy_(keys.vector)
        if self.choice.first == 0:
            self.begun.fill_(True)
        self.written.fill_(self.choice.first * self.images)
        first = draws.mix(self.host_seed.exact(self.seed), self.clusterings_by(int(self.written)))
        for number in range(self.choice.clusterings):
            self._cluster(number, draws.mix(first, number) if number else first)

    @torch.no_grad()
    def write(self, fresh: Keys) -> None:
        """Update the rows of these images, and recluster if that is due. Raises `UserError` as `BankStore.write` does,
        and also if the bank still waits for its first rows."""
        if len(fresh) == 0:
            return
        check_first_rows(self)
        count = self.clusterings_by(self.rows_written.lower_bound(self.written))
        self.write_rows(fresh, self.choice.momentum)
        passes = self.choice.first + count * self.choice.every
        if self.rows_written.at_least(self.written, passes * self.images):
            due = self.clusterings_by(self.rows_written.exact(self.written))
            self.cluster(draws.mix(self.host_seed.exact(self.seed), due))

    def clusterings_by(self, rows: int) -> int:
        """How often the bank has been clustered once `rows` rows are written: once after `first` passes, then once
        every `every` passes."""
        past = rows // self.images - self.choice.first
        return 0 if past < 0 else 1 + past // self.choice.every

    def rehearse(self) -> int:
        """Run k-means once. Returns how often an epoch runs it on average, rounded up: `clusterings` / `every`."""
        kmeans(self.rows, self.choice.clusters, 0, self.choice.iterations)
        return -(-self.choice.clusterings // self.choice.every)

    def cluster(self, seed: int) -> None:
        """Run k-means over all rows, once for each clustering."""
        for number in range(self.choice.clusterings):
            self._cluster(number, draws.mix(seed, number))

    def _cluster(self, number: int, seed: int) -> None:
        self.label[:, number] = kmeans(self.rows, self.choice.clusters, seed, self.choice.iterations)[0]
