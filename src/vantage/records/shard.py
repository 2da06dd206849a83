"""A sharded memory: each process holds some of the rows, and the labels of all.

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
    "a part of this branch looks at a whole bank, but each process holds only a share of it: use the bank with"
    " sharded=False, or other positives and rules"
)


@dataclass(frozen=True)
class Shard:
    """A pool whose rows are sharded in order: this process holds `local`, and lower ranks hold the rows before
    `first`. Attributes that need the whole pool (`vector`, `image`) raise an error."""

    local: Keys
    """The rows of this process."""

    first: int
    """Number of the first row of this process."""

    count: int
    """Number of rows on all processes together."""

    cluster: Int[Tensor, "m c"] | None = None
    """Label of each row of all processes in each of c clusterings, or `None` if the memory keeps no clusters."""

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
        """Raises `UserError`, as `vector` does."""
        raise UserError(_WHOLE)

    def row_of(self, query: Keys, otherwise: str) -> Int[Tensor, "b"]:
        """The row of each query's image; see `Keys.row_of`."""
        demand((query.image < self.count).all(), otherwise)
        return query.image

    def image_of(self, row: Int[Tensor, "r"]) -> Int[Tensor, "r"]:
        """The image of each row, whose number is that of the row."""
        return row

    def narrow(self, row: Int[Tensor, "r"]) -> "Shard":
        """Only these rows of the pool, given in order. On a GPU the host waits to learn how many are here."""
        edges = torch.tensor([self.first, self.first + len(self.local)], device=row.device)
        start, end = torch.searchsorted(row, edges).tolist()
        return Shard(self.local.rows(row[start:end] - self.first), start, len(row))


Pool = Keys | Shard
"""What a branch compares with: keys that every process has, or sharded rows."""


def rows_here(row: Int[Tensor, "*n"], first: int, count: int) -> tuple[Int[Tensor, "*n"], Bool[Tensor, "*n"]]:
    """The place of each row among the `count` rows that this process holds from row `first` on, and whether it is one
    of them. A row of another process gets the place of an arbitrary row that is here."""
    local = row - first
    return local.clamp(0, max(0, count - 1)), (local >= 0) & (local < count)
