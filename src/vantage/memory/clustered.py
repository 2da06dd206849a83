"""A bank whose clusters follow its rows at every step.

m: images   b: images of a step   d: width
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vantage import draws
from vantage.memory.bank import Bank
from vantage.memory.clustering import Clustering
from vantage.memory.host_count import HostCount
from vantage.memory.kmeans import Closeness, Distance, kmeans, nearest
from vantage.memory.labeled_rows import LabeledRows, RowMoves, check_first_rows
from vantage.records import Keys
from vantage.schedules.checks import at_least

__all__ = ["ClusteredBank", "OnlineStore"]

_RECOUNT = 1000  # writes after which the running sums are recomputed, so that rounding errors do not pile up


@dataclass(frozen=True)
class ClusteredBank:
    """A bank whose labels follow its rows at every step: InterCLR's mini-batch k-means (Xie et al., §3.1).

    k-means over the bank makes the first clusters. After that, each write gives its images the label of the centroid
    nearest to their *new* row. Every `refresh_every` writes, centroids become the means of their rows. Clusters of
    fewer than `smallest` images are dissolved.

    With `first` = 0 the bank starts with the untrained network's vector of every image and is clustered at once (as in
    the paper and the release). `vantage.train` passes these rows to the bank; in a loop of your own, call
    `Store.begin`. Otherwise every image is a cluster of its own until the bank has been filled `first` times, which
    costs no extra pass.
    """

    momentum: float = 0.5
    """Weight on the old row, 0 (replace) to 1 (never change)."""

    clusters: int = 10_000
    """Number of clusters; InterCLR uses ten times the number of ImageNet's classes."""

    refresh_every: int = 10
    """Writes between refreshes of the centroids: 10 in the release, 1 in the paper's text. A step writes once."""

    smallest: int = 20
    """Images that a cluster needs to persist; with 0 or 1 no cluster is ever dissolved."""

    closeness: Closeness = Distance()
    """How the nearest centroid is chosen when labels are updated at each step."""

    first: int = 1
    """Passes over the images before the first clustering; with 0, features of the untrained network are clustered."""

    iterations: int = 20
    """Maximum number of iterations of the first k-means."""

    sharded: bool = False
    """Whether each process holds only its share of the rows, as in `Bank`. Every process has all labels."""

    def __post_init__(self) -> None:
        Bank(self.momentum)
        at_least(self, 2, "clusters")
        at_least(self, 1, "refresh_every", "iterations")
        at_least(self, 0, "smallest", "first")

    def fit_to(self, images: int, batch_size: int) -> "ClusteredBank":
        """At most one cluster for every 128 images (10,000 for 1.28 million), but at least 2; `smallest` at most a
        quarter of the mean size; a refresh at every write if an epoch has fewer than 1,000 steps."""
        clusters = min(self.clusters, max(2, images // 128))
        every = self.refresh_every if images >= 1_000 * batch_size else 1
        smallest = min(self.smallest, images // (4 * clusters))
        return replace(self, clusters=clusters, smallest=smallest, refresh_every=every)

    def build(self, images: int, width: int) -> "OnlineStore":
        """A bank of random unit vectors. Raises `UserError` for more clusters than images."""
        return OnlineStore(images, width, self)


class OnlineStore(LabeledRows):
    """The store of `ClusteredBank`: centroids and running sums in addition to the labels, all saved in checkpoints."""

    centroid: Tensor
    total: Tensor
    count: Tensor
    writes: Tensor
    begun: Tensor

    def __init__(self, images: int, width: int, choice: ClusteredBank) -> None:
        super().__init__(images, width, choice.clusters, 1, choice.sharded)
        self.choice = choice
        self.host_writes, self.host_begun, self.host_seed = HostCount(), HostCount(), HostCount()  # caches, not state
        self.register_buffer("centroid", torch.zeros(choice.clusters, width))
        self.register_buffer("total", torch.zeros(choice.clusters, width, dtype=torch.float64))
        self.register_buffer("count", torch.zeros(choice.clusters, dtype=torch.int64))
        self.register_buffer("writes", torch.zeros((), dtype=torch.int64))
        self.register_buffer("begun", torch.tensor(choice.first > 0))

    @property
    def waits(self) -> bool:
        """Whether the bank still needs the untrained network's vectors (`begin`)."""
        return self.choice.first == 0 and not self.host_begun.at_least(self.begun, 1)

    @torch.no_grad()
    def begin(self, keys: Keys) -> None:
        """Take these vectors as the rows and cluster them at once, as after `first` passes."""
        self.vector.copy_(keys.vector)
        self.begun.fill_(True)
        self.written.fill_(self.choice.first * self.images)
        self.cluster(draws.mix(self.host_seed.exact(self.seed), 1))

    @property
    def clustering(self) -> Clustering:
        """A view of the labels, centroids and sums, through which they are changed in place."""
        return Clustering(self.rows, self.label[:, 0], self.centroid, self.total, self.count, self.members)

    @torch.no_grad()
    def write(self, fresh: Keys) -> None:
        """Update the rows of these images, then the clusters. Raises `UserError` as `BankStore.write` does, and also
        if the bank still waits for its first rows."""
        if len(fresh) == 0:
            return
        check_first_rows(self)
        threshold = self.choice.first * self.images
        has_clusters = self.rows_written.at_least(self.written, threshold)
        moves = self.write_rows(fresh, self.choice.momentum)
        if has_clusters:
            self.follow(moves)
        elif self.rows_written.at_least(self.written, threshold):
            self.cluster(draws.mix(self.host_seed.exact(self.seed), 1))

    def cluster(self, seed: int) -> None:
        """Run k-means over all rows."""
        label, centroid = kmeans(self.rows, self.choice.clusters, seed, self.choice.iterations)
        self.label[:, 0] = label
        self.centroid.copy_(centroid)
        self.clustering.recount()

    def follow(self, moves: RowMoves) -> None:
        """Relabel the moved rows, refresh the centroids if that is due, and dissolve clusters that became too small."""
        clustering, image = self.clustering, moves.image
        label = nearest(self.rows[image], self.centroid, self.choice.closeness)[0]
        clustering.move(image, label, moves.old, moves.first)
        self.host_writes.add(self.writes, 1, 1)
        writes = self.host_writes.exact(self.writes)
        if writes % _RECOUNT == 0:
            clustering.recount()
        if writes % self.choice.refresh_every == 0:
            clustering.refresh()
        clustering.mend(
            self.choice.smallest, self.choice.closeness, draws.mix(self.host_seed.exact(self.seed), 1, writes)
        )
