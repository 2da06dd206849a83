"""Banks whose rows have clusters.

m: images   b: images of a step   d: width   c: clusterings   k: clusters of one
"""

from abc import abstractmethod
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage import draws
from vantage.errors import UserError
from vantage.memory.bank import Bank, BankStore
from vantage.memory.clustering import Clustering
from vantage.memory.first_labels import Apart, FirstLabels
from vantage.memory.kmeans import Closeness, Distance, kmeans, nearest
from vantage.records import Keys
from vantage.records.members import Members

__all__ = ["ClusteredBank", "ClusteredStore", "OnlineStore", "ReclusteredBank", "ReclusteredStore"]

_RECOUNT = 1000  # writes after which the running sums are made anew: rounding must not pile up


@dataclass(frozen=True)
class ClusteredBank:
    """A bank whose labels follow its rows at every step: InterCLR's mini-batch k-means (Xie et al., §3.1).

    k-means over the bank makes the first clusters. From there on each write gives its images the label of the centroid
    nearest to their *new* row, centroids become the means of their rows every `refresh_every` writes, and clusters
    below `smallest` are dissolved.

    With `first` = 0 the bank starts with what the untrained network makes of every image and is clustered at once (the
    paper and the release); `vantage.train` gives it these rows, and a loop of your own does so by `Store.begin`.
    Otherwise every image is a cluster of its own until the bank has been filled `first` times, which costs no extra
    pass.
    """

    momentum: float = 0.5
    """Weight on the old row, 0 (replace) to 1 (never change)."""

    clusters: int = 10_000
    """How many: InterCLR takes ten times the classes of ImageNet."""

    refresh_every: int = 10
    """Writes between refreshes of the centroids, one for each accumulated part of a step: 10 in the release, 1 in the
    paper's text."""

    smallest: int = 20
    """Images that a cluster needs to stay; 0 or 1: none is ever dissolved."""

    closeness: Closeness = Distance()
    """What nearest means for labels at each step."""

    first: int = 1
    """Passes over the images before the first clustering; 0: features of the untrained network are clustered."""

    iterations: int = 20
    """Iterations of the first k-means, at most."""

    def __post_init__(self) -> None:
        Bank(self.momentum)
        _at_least(self, 2, "clusters")
        _at_least(self, 1, "refresh_every", "iterations")
        _at_least(self, 0, "smallest", "first")

    def fit_to(self, images: int, batch_size: int) -> "ClusteredBank":
        """At most one cluster for 128 images (10,000 of 1.28 million), and no fewer than 2; `smallest` at most a
        quarter of the mean size; a refresh at every write where an epoch has fewer than 1,000 steps."""
        clusters = min(self.clusters, max(2, images // 128))
        every = self.refresh_every if images >= 1_000 * batch_size else 1
        smallest = min(self.smallest, images // (4 * clusters))
        return replace(self, clusters=clusters, smallest=smallest, refresh_every=every)

    def build(self, images: int, width: int) -> "OnlineStore":
        """A bank of random unit vectors. Raises `UserError` for more clusters than images."""
        return OnlineStore(images, width, self)


@dataclass(frozen=True)
class ReclusteredBank:
    """A bank that is clustered anew every few epochs, several times over: DeepCluster's and local aggregation's way.

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
    """Passes over the images before the first clustering."""

    iterations: int = 20
    """Iterations of k-means, at most."""

    start: FirstLabels = Apart()
    """Which images share a cluster before: `Apart` or `Together`."""

    images_per_cluster: int = 42
    """Images that a cluster has on average at least, where `fit` makes the clusters fewer: 42 in local aggregation."""

    def __post_init__(self) -> None:
        Bank(self.momentum)
        _at_least(self, 2, "clusters")
        _at_least(self, 1, "clusterings", "every", "first", "iterations", "images_per_cluster")

    def stretched(self, longer: float, finer: float) -> "ReclusteredBank":
        """The first clustering at the same part of a run of `longer` times the epochs, after one at least."""
        return replace(self, first=max(1, round(self.first * longer)))

    def fit_to(self, images: int, batch_size: int) -> "ReclusteredBank":
        """At most one cluster for `images_per_cluster` images (30,000 of 1.28 million for 42), and no fewer than 2."""
        return replace(self, clusters=min(self.clusters, max(2, images // self.images_per_cluster)))

    def build(self, images: int, width: int) -> "ReclusteredStore":
        """A bank of random unit vectors. Raises `UserError` for more clusters than images."""
        return ReclusteredStore(images, width, self)


def _at_least(part: ClusteredBank | ReclusteredBank, least: int, *names: str) -> None:
    for name in names:
        if getattr(part, name) < least:
            raise UserError(f"{type(part).__name__}.{name} is {getattr(part, name)}: give at least {least}")


class ClusteredStore(BankStore):
    """A bank with labels. Which clusterings were made follows from the number of rows written, which is saved."""

    label: Tensor
    written: Tensor
    seed: Tensor

    def __init__(self, images: int, width: int, momentum: float, clusters: int, clusterings: int) -> None:
        super().__init__(images, width, momentum)
        if clusters > images:
            raise UserError(f"{clusters} clusters of {images} images cannot be made: ask for fewer, or use Run.fit")
        self.register_buffer("label", self.image[:, None].repeat(1, clusterings))
        self.register_buffer("written", torch.zeros((), dtype=torch.int64))
        self.register_buffer("seed", torch.randint(2**62, ()))
        self.members = Members()  # a cache, not state

    def read(self, fresh: Keys) -> Keys:
        """Every row and its labels as earlier steps left them. Not a copy: write only after the loss."""
        return Keys(self.vector, self.image, self.label, members=self.members)

    @torch.no_grad()
    def write(self, fresh: Keys) -> None:
        """Move the rows of these images, then see to the clusters. Raises `UserError` as `BankStore.write`."""
        if len(fresh) == 0:
            return
        self._check(fresh)
        image = fresh.image.unique()
        old, written = self.vector[image], int(self.written)
        super().write(fresh)
        self.written += len(image)
        due = self.clusterings_by(written + len(image))
        if due > self.clusterings_by(written):
            self.cluster(draws.mix(int(self.seed), due))
        elif due:
            self.follow(image, old)

    @abstractmethod
    def clusterings_by(self, written: int) -> int:
        """How often all rows are to have been clustered once so many were written."""

    @abstractmethod
    def cluster(self, seed: int) -> None:
        """Make all labels anew."""

    def follow(self, image: Int[Tensor, "b"], old: Tensor) -> None:
        """The rows of these images were moved; `old` says where they were."""


class ReclusteredStore(ClusteredStore):
    """The store of `ReclusteredBank`; saved."""

    def __init__(self, images: int, width: int, choice: ReclusteredBank) -> None:
        super().__init__(images, width, choice.momentum, choice.clusters, choice.clusterings)
        self.choice = choice
        self.label.copy_(choice.start.of(self.image)[:, None].expand_as(self.label))

    def clusterings_by(self, written: int) -> int:
        """One after `first` passes, and one every `every` passes from there."""
        past = written // len(self.vector) - self.choice.first
        return 0 if past < 0 else 1 + past // self.choice.every

    def cluster(self, seed: int) -> None:
        """k-means over all rows, once for each clustering."""
        for number in range(self.choice.clusterings):
            asked = draws.mix(seed, number)
            self.label[:, number] = kmeans(self.vector, self.choice.clusters, asked, self.choice.iterations)[0]


class OnlineStore(ClusteredStore):
    """The store of `ClusteredBank`: centroids and running sums beside the labels, all saved."""

    centroid: Tensor
    total: Tensor
    count: Tensor
    writes: Tensor
    begun: Tensor

    def __init__(self, images: int, width: int, choice: ClusteredBank) -> None:
        super().__init__(images, width, choice.momentum, choice.clusters, 1)
        self.choice = choice
        self.register_buffer("centroid", torch.zeros(choice.clusters, width))
        self.register_buffer("total", torch.zeros(choice.clusters, width, dtype=torch.float64))
        self.register_buffer("count", torch.zeros(choice.clusters, dtype=torch.int64))
        self.register_buffer("writes", torch.zeros((), dtype=torch.int64))
        self.register_buffer("begun", torch.tensor(choice.first > 0))

    @property
    def waits(self) -> bool:
        """Whether the rows of the untrained network have not come yet."""
        return self.choice.first == 0 and not bool(self.begun)

    @torch.no_grad()
    def begin(self, rows: Float[Tensor, "m d"]) -> None:
        """Take these rows and cluster them. Raises `UserError` where the first clusters come of later rows."""
        if self.choice.first:
            raise UserError(
                f"the first clusters are made after {self.choice.first} pass(es): give none, or say first=0"
            )
        self.vector.copy_(rows)
        self.begun.fill_(True)
        self.cluster(draws.mix(int(self.seed), 1))

    @property
    def clustering(self) -> Clustering:
        """The labels, centroids and sums, to be changed in place."""
        return Clustering(self.vector, self.label[:, 0], self.centroid, self.total, self.count, self.members)

    def clusterings_by(self, written: int) -> int:
        """One after `first` passes. Raises `UserError` while it waits for its first rows."""
        if self.waits:
            raise UserError(
                "the bank's first clusters are of the untrained network, which nobody has shown it: call Store.begin"
                " with a unit vector of every image, as vantage.train does, or make them later (first=1)"
            )
        return int(written >= self.choice.first * len(self.vector))

    def cluster(self, seed: int) -> None:
        """k-means over all rows."""
        label, centroid = kmeans(self.vector, self.choice.clusters, seed, self.choice.iterations)
        self.label[:, 0] = label
        self.centroid.copy_(centroid)
        self.clustering.recount()

    def follow(self, image: Int[Tensor, "b"], old: Tensor) -> None:
        """New labels for the moved rows; centroids now and then; small clusters always."""
        now = self.clustering
        now.move(image, nearest(self.vector[image], self.centroid, self.choice.closeness)[0], old)
        self.writes += 1
        writes = int(self.writes)
        if writes % _RECOUNT == 0:
            now.recount()
        if writes % self.choice.refresh_every == 0:
            now.refresh()
        now.mend(self.choice.smallest, self.choice.closeness, draws.mix(int(self.seed), 1, writes))
