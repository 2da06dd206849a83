"""Positives from other images: rows of the query's cluster.

The memory keeps an index of the clusters' members (`Members`) from step to step, so that no query has to look at every
row.

b: queries   m: keys in the pool   c: clusterings   p: positives of each query
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from vantage import draws
from vantage.cosines import column_cosines
from vantage.errors import UserError
from vantage.positives.nearest import nearest_rows
from vantage.positives.positives import of_rows
from vantage.records import Keys, Pool, Scores, Shard
from vantage.records.members import Members

__all__ = ["ClusterMate", "ClusterMates", "NearMates", "OtherMate"]

_SALT = 1 << 16  # far from the small salts that rules use


@dataclass(frozen=True)
class ClusterMate:
    """One row of the query's cluster, drawn uniformly by the query's seed (InterCLR, §3.2). As in the release, this may
    be the query's own row.

    With several clusterings, one of them is drawn first. For an image alone in its cluster it is its own row.
    """

    always_finds: ClassVar[Literal[True]] = True

    def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Pool, step: int) -> Scores:
        """Raises `UserError` if the memory keeps no clusters."""
        members, start, size = _cluster(query, pool)
        return _mate(query, pool, members.rows(_place(query, start, size)), size)


@dataclass(frozen=True)
class OtherMate:
    """`ClusterMate` that never draws the query's own row, unless its image is alone in its cluster."""

    always_finds: ClassVar[Literal[True]] = True

    def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Pool, step: int) -> Scores:
        """Raises `UserError` if the memory keeps no clusters."""
        members, start, size = _cluster(query, pool)
        place = _place(query, start, size - 1)  # the last member is not drawn: it replaces the own row if that is drawn
        is_own = pool.image_of(members.rows(place)) == query.image
        return _mate(query, pool, members.rows(torch.where(is_own, start + size - 1, place)), size)


def _cluster(query: Keys, pool: Pool) -> tuple[Members, Int[Tensor, "b"], Int[Tensor, "b"]]:
    """The index, and where the members of one cluster of each query begin, and how many there are."""
    members = pool.members or Members()
    starts, sizes = members.find(pool.clusters, query.clusters)
    if sizes.shape[1] > 1:
        which = draws.integers(query.seeds, 1, sizes.shape[1], _SALT)
        starts, sizes = starts.gather(1, which), sizes.gather(1, which)
    return members, starts[:, 0], sizes[:, 0]


def _place(query: Keys, start: Int[Tensor, "b"], size: Int[Tensor, "b"]) -> Int[Tensor, "b"]:
    """A random one of the `size` places from `start` on."""
    return start + draws.integers(query.seeds, 1, size.clamp(min=1)[:, None], _SALT + 1)[:, 0]


def _mate(query: Keys, pool: Pool, row: Int[Tensor, "b"], size: Int[Tensor, "b"]) -> Scores:
    return of_rows(query, pool, row[:, None], size[:, None] > 0)


@dataclass(frozen=True)
class ClusterMates:
    """All rows of the query's cluster, including its own: Ring's "+C_i" (arXiv 2010.02037). `PooledNCE` uses the mean
    over these rows as the positive; `InfoNCE` uses the mean of their losses.

    With several clusterings, these are all rows of the query's clusters. From a cluster larger than `most`, `most` rows
    are drawn with replacement; a row that is drawn twice counts once.
    """

    always_finds: ClassVar[Literal[True]] = True

    most: int = 256
    """Maximum number of rows of one cluster."""

    def __post_init__(self) -> None:
        if self.most < 1:
            raise UserError(f"ClusterMates(most={self.most}) leaves no positive: give at least 1")

    def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Pool, step: int) -> Scores:
        """Raises `UserError` if the memory keeps no clusters."""
        members = pool.members or Members()
        starts, sizes = members.find(pool.clusters, query.clusters)
        count = self.most
        if sizes.device.type == "cpu" and not isinstance(pool, Shard):  # otherwise the host would have to wait
            count = min(self.most, max(1, int(sizes.max())))
        rows, keeps = [], []
        for number, (start, size) in enumerate(zip(starts.T[:, :, None], sizes.T[:, :, None], strict=True)):
            place = torch.arange(count, device=size.device).expand(len(query), -1)
            picks = draws.integers(query.seeds, count, size.clamp(min=1), _SALT + number)
            place = torch.where(size > self.most, picks, place)
            keeps.append(place < size)
            rows.append(members.rows(start + place))
        row, keep = _each_once(torch.cat(rows, 1), torch.cat(keeps, 1), len(pool))
        return of_rows(query, pool, row, keep)


def _each_once(
    row: Int[Tensor, "b p"], keep: Bool[Tensor, "b p"], rows: int
) -> tuple[Int[Tensor, "b p"], Bool[Tensor, "b p"]]:
    """Rows in order; only the first occurrence of each is kept, and dropped entries become row 0."""
    row = torch.where(keep, row, rows).sort(dim=1).values
    first = torch.ones_like(keep)
    first[:, 1:] = row[:, 1:] != row[:, :-1]
    keep = first & (row < rows)
    return torch.where(keep, row, 0), keep


@dataclass(frozen=True)
class NearMates:
    """Rows of the query's cluster among its `count` nearest rows: C_i ∩ B_i of local aggregation (arXiv 1903.12355).

    A row is a mate if it shares a cluster with the query's image in any clustering. The query's own row counts as one.
    A query without a near mate has no positive. The rule `Hardest` with the same count makes B_i the negatives;
    `OtherClusters` after it removes the mates.
    """

    count: int = 4_096
    """k: how many rows of the pool count as near."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UserError(f"NearMates(count={self.count}) leaves no positive: give at least 1")

    def fit_to(self, images: int, batch_size: int) -> "NearMates":
        """At most a quarter of the images."""
        return replace(self, count=min(self.count, max(1, images // 4)))

    def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Pool, step: int) -> Scores:
        """Raises `UserError` if the memory keeps no clusters."""
        row = nearest_rows(query, pool, self.count)
        keep = torch.zeros_like(row, dtype=torch.bool)
        for query_label, pool_label in zip(query.clusters.T, pool.clusters.T, strict=True):
            keep |= pool_label[row] == query_label[:, None]
        if isinstance(pool, Shard):  # every process must look up equally many rows
            return of_rows(query, pool, row, keep)
        if keep.device.type != "cpu":  # counting mates would make the host wait, so all near rows are scored
            return Scores(column_cosines(query.vector, pool.vector, row), row, keep)
        column = keep.sort(dim=1, descending=True, stable=True).indices[:, : max(1, int(keep.sum(1).max()))]
        row, keep = row.gather(1, column), keep.gather(1, column)
        return of_rows(query, pool, row, keep)
