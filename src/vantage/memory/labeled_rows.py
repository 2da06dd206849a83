"""What banks with clusters have in common: labeled rows, and how a write moves them.

m: images   b: images of a step   d: width   c: clusterings
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vantage.errors import UserError
from vantage.memory.bank import check_images, first_of_each, move_rows
from vantage.memory.host_count import HostCount
from vantage.memory.rows import RowStore
from vantage.memory.store import Store
from vantage.records import Keys, Pool, Shard
from vantage.records.members import Members

__all__ = ["LabeledRows", "RowMoves", "check_first_rows"]


class LabeledRows(RowStore):
    """What stores of labeled rows have in common. Every process has the labels of all rows."""

    label: Tensor
    written: Tensor
    seed: Tensor

    def __init__(self, images: int, width: int, clusters: int, clusterings: int, sharded: bool) -> None:
        """Random rows, each a cluster of its own, and a random seed. The number of rows written is saved, and tells
        which clusterings have been made. Raises `UserError` for more clusters than images."""
        if clusters > images:
            raise UserError(f"{clusters} clusters of {images} images cannot be made: ask for fewer, or use Run.fit")
        super().__init__(images, width, sharded)
        self.members, self.rows_written = Members(), HostCount()  # the index is a cache, not state
        self.register_buffer("label", torch.arange(images)[:, None].repeat(1, clusterings))
        self.register_buffer("written", torch.zeros((), dtype=torch.int64))
        self.register_buffer("seed", torch.randint(2**62, ()))

    def read(self, fresh: Keys) -> Pool:
        """All rows and labels, as earlier steps left them. They are not copied: write only after the loss."""
        if not self.is_sharded:
            return Keys(self.vector, self.image, self.label, members=self.members)
        keys = Keys(self.vector, self.image, self.label[self.share])
        return Shard(keys, self.share.start, self.images, self.label, self.members)

    def write_rows(self, fresh: Keys, momentum: float) -> "RowMoves":
        """Update the rows of these images and count them. Raises `UserError` as `BankStore.write` does."""
        check_images(fresh.image, self.images)
        first = None
        if fresh.image.device.type == "cpu":
            image = fresh.image.unique()
        else:  # counting distinct images on a GPU would make the host wait, so repeated ones stay and are marked
            image = fresh.image.sort().values
            first = first_of_each(image)
        old = self.rows[image]
        move_rows(self, fresh, momentum)
        self.rows_written.add(self.written, len(image) if first is None else first.sum(), len(image))
        return RowMoves(image, old, first)


class RowMoves(NamedTuple):
    """The changes that a write made."""

    image: Int[Tensor, "b"]
    """The images whose rows moved, in order."""

    old: Float[Tensor, "b d"]
    """Their rows before the write."""

    first: Bool[Tensor, "b"] | None
    """Which entries are the first of their image; `None` if no image is repeated."""


def check_first_rows(store: Store) -> None:
    """Raises `UserError` for a store that still waits for its first rows."""
    if store.waits:
        raise UserError(
            "this bank first clusters the untrained network's features, which it does not have yet: call Store.begin"
            " with a unit vector of every image, as vantage.train does, or use first=1"
        )
