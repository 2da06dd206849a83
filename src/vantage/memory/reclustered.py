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
from vantage.memory.labeled_rows import LabeledRows, at_least, check_first_rows
from vantage.records import Keys

__all__ = ["ReclusteredBank", "ReclusteredStore"]


@dataclass(frozen=True)
class ReclusteredBank:
    """A bank that is reclustered every few epochs, into several clusterings, as in DeepCluster and local aggregation.

    Labels stay as they are in between, so they lag behind the rows. Until the first clustering they are `start`. Each
    of the clusterings starts from other rows (Zhuang et al., arXiv 1903.12355).
    """

    momentum: float = 0.5
    """Weight on the old row, 0 (replace) to 1 (never change)."""

    clusters: int = 30_000
    """How many in each clustering."""

    clusterings: int = 10
    """H: how many clusterings; images are mates if any of them joins them."""

    every: int = 1
    """Passes over the images between clusterings."""

    first: int = 1
    """Passes over the images before the first clustering; 0: features of the untrained network are clustered, as by
    `ClusteredBank(first=0)`."""

    iterations: int = 20
    """Iterations of k-means, at most."""

    start: FirstLabels = Apart()
    """Which images share a cluster before: `Apart` or `Together`."""

    images_per_cluster: int = 42
    """Images that a cluster has on average at least, where `fit` makes the clusters fewer: 42 in local aggregation."""

    sharded: bool = False
    """Whether each process holds the rows of its share of the images, as in `Bank`; every process has all labels."""

    def __post_init__(self) -> None:
        Bank(self.momentum)
        at_least(self, 2, "clusters")
        at_least(self, 1, "clusterings", "every", "iterations", "images_per_cluster")
        at_least(self, 0, "first")

    def stretch(self, longer: float, finer: float) -> "ReclusteredBank":
        """The first clustering at the same part of a run of `longer` times the epochs, after one at least if not at
        once."""
        return replace(self, first=max(1, round(self.first * longer)) if self.first else 0)

    def fit_to(self, images: int, batch_size: int) -> "ReclusteredBank":
        """At most one cluster for `images_per_cluster` images (30,000 of 1.28 million for 42), and no fewer than 2."""
        return replace(self, clusters=min(self.clusters, max(2, images // self.images_per_cluster)))

    def build(self, images: int, width: int) -> "ReclusteredStore":
        """A bank of random unit vectors. Raises `UserError` for more clusters than images."""
        return ReclusteredStore(images, width, self)


class ReclusteredStore(LabeledRows):
    """The store of `ReclusteredBank`; saved."""

    begun: Tensor

    def __init__(self, images: int, width: int, choice: ReclusteredBank) -> None:
        super().__init__(images, width, choice.clusters, choice.clusterings, choice.sharded)
        self.choice, self.host_begun, self.host_seed = choice, HostCount(), HostCount()
        self.label.copy_(choice.start.of(torch.arange(images))[:, None].expand_as(self.label))
        if choice.first == 0:
            self.register_buffer("begun", torch.zeros((), dtype=torch.bool))

    @property
    def waits(self) -> bool:
        """Whether the rows of the untrained network have not come yet."""
        return self.choice.first == 0 and not self.host_begun.at_least(self.begun, 1)

    @torch.no_grad()
    def begin(self, keys: Keys) -> None:
        """Take these rows and cluster them at once, as if `first` passes were over; the first clustering is the one
        that `OnlineStore.begin` makes."""
        self.vector.copy_(keys.vector)
        if self.choice.first == 0:
            self.begun.fill_(True)
        self.written.fill_(self.choice.first * self.images)
        first = draws.mix(self.host_seed.exact(self.seed), self.clusterings_by(int(self.written)))
        for number in range(self.choice.clusterings):
            self._cluster(number, draws.mix(first, number) if number else first)

    @torch.no_grad()
    def write(self, fresh: Keys) -> None:
        """Move the rows of these images, then update the clusters. Raises `UserError` as `BankStore.write`, and while
        it waits for its first rows."""
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
        """One after `first` passes, and one every `every` passes from there."""
        past = rows // self.images - self.choice.first
        return 0 if past < 0 else 1 + past // self.choice.every

    def rehearse(self) -> int:
        """One clustering; an epoch repeats it for each of the clusterings, where it makes them anew."""
        kmeans(self.rows, self.choice.clusters, 0, self.choice.iterations)
        return -(-self.choice.clusterings // self.choice.every)

    def cluster(self, seed: int) -> None:
        """k-means over all rows, once for each clustering."""
        for number in range(self.choice.clusterings):
            self._cluster(number, draws.mix(seed, number))

    def _cluster(self, number: int, seed: int) -> None:
        self.label[:, number] = kmeans(self.rows, self.choice.clusters, seed, self.choice.iterations)[0]
