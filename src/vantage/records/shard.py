"""The rows of a memory that is dealt out to the processes: each holds some, and knows the labels of all.

s: rows here   m: rows of all processes   b: queries   r: rows   c: clusterings
"""

from dataclasses import dataclass
from typing import NoReturn

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from vantage.errors import UserError
from vantage.records.keys import Keys, demand
from vantage.records.members import Members

__all__ = ["Pool", "Shard", "rows_here"]

_WHOLE = (
    "a part of this branch looks at a whole bank, but each process holds a share of it: take the bank with"
    " sharded=False, or other positives and rules"
)


@dataclass(frozen=True)
class Shard:
    """A pool whose rows are dealt out in order: this process holds `local`, and the processes before it hold the rows
    up to `first`. Attributes that need the whole pool (`vector`, `image`) raise an error."""

    local: Keys
    """The rows of this process."""

    first: int
    """The number of the first of them."""

    count: int
    """Rows of all processes."""

    cluster: Int[Tensor, "m c"] | None = None
    """Label of each row of all processes in each of c clusterings, or `None` where the memory keeps none."""

    members: Members | None = None
    """The memory's index of all rows by label."""

    def __len__(self) -> int:
        return self.count

    @property
    def clusters(self) -> Int[Tensor, "m c"]:
        """Labels of each row. Raises `UserError` if the memory keeps none."""
        return self.local.clusters if self.cluster is None else self.cluster

    @property
    def vector(self) -> NoReturn:
        """Raises `UserError`: no process has all rows."""
        raise UserError(_WHOLE)

    @property
    def image(self) -> NoReturn:
        """Raises `UserError`, as `vector`."""
        raise UserError(_WHOLE)

    def row_of(self, query: Keys, otherwise: str) -> Int[Tensor, "b"]:
        """The row of each query's image, as `Keys.row_of`."""
        demand((query.image < self.count).all(), otherwise)
        return query.image

    def image_of(self, row: Int[Tensor, "r"]) -> Int[Tensor, "r"]:
        """The image of each row: its number."""
        return row

    def narrow(self, row: Int[Tensor, "r"]) -> "Shard":
        """Only these rows of the pool, which are in order; on a device it is asked how many are here."""
        edges = torch.tensor([self.first, self.first + len(self.local)], device=row.device)
        start, end = torch.searchsorted(row, edges).tolist()
        return Shard(self.local.rows(row[start:end] - self.first), start, len(row))


Pool = Keys | Shard
"""What a branch compares with: keys that every process has, or rows that are dealt out."""


def rows_here(row: Int[Tensor, "*n"], first: int, count: int) -> tuple[Int[Tensor, "*n"], Bool[Tensor, "*n"]]:
    """Where rows of all processes are among the `count` here, which follow those before `first`, and whether they are;
    one that is elsewhere gets the place of any that is here."""
    local = row - first
    return local.clamp(0, max(0, count - 1)), (local >= 0) & (local < count)
