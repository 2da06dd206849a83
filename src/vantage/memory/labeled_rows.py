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

__all__ = ["LabeledRows", "RowMoves", "at_least", "check_first_rows"]


class LabeledRows(RowStore):
    """What stores of labeled rows have in common; the labels of all rows are on every process."""

    label: Tensor
    written: Tensor
    seed: Tensor

    def __init__(self, images: int, width: int, clusters: int, clusterings: int, sharded: bool) -> None:
        """Random rows, each a cluster of its own, and a seed. Which clusterings were made follows from the number of
        rows written, which is saved. Raises `UserError` for more clusters than images."""
        if clusters > images:
            raise UserError(f"{clusters} clusters of {images} images cannot be made: ask for fewer, or use Run.fit")
        super().__init__(images, width, sharded)
        self.members, self.rows_written = Members(), HostCount()  # the index is a cache, not state
        self.register_buffer("label", torch.arange(images)[:, None].repeat(1, clusterings))
        self.register_buffer("written", torch.zeros((), dtype=torch.int64))
        self.register_buffer("seed", torch.randint(2**62, ()))

    def read(self, fresh: Keys) -> Pool:
        """Every row and its labels as earlier steps left them. Not a copy: write only after the loss."""
        if not self.is_sharded:
            return Keys(self.vector, self.image, self.label, members=self.members)
        keys = Keys(self.vector, self.image, self.label[self.share])
        return Shard(keys, self.share.start, self.images, self.label, self.members)

    def write_rows(self, fresh: Keys, momentum: float) -> "RowMoves":
        """Move the rows of these images and count them. Raises `UserError` as `BankStore.write`."""
        check_images(fresh.image, self.images)
        first = None
        if fresh.image.device.type == "cpu":
            image = fresh.image.unique()
        else:  # how many images differ, a device would have to be asked for
            image = fresh.image.sort().values
            first = first_of_each(image)
        old = self.rows[image]
        move_rows(self, fresh, momentum)
        self.rows_written.add(self.written, len(image) if first is None else first.sum(), len(image))
        return RowMoves(image, old, first)


class RowMoves(NamedTuple):
    """What a write did."""

    image: Int[Tensor, "b"]
    """The images whose rows moved, in order."""

    old: Float[Tensor, "b d"]
    """Where their rows were."""

    first: Bool[Tensor, "b"] | None
    """Which of them is the first of its image; `None` where each image is there once."""


def at_least(part: object, least: int, *names: str) -> None:
    """Raises `UserError` for a field below `least`."""
    for name in names:
        if getattr(part, name) < least:
            raise UserError(f"{type(part).__name__}.{name} is {getattr(part, name)}: give at least {least}")


def check_first_rows(store: Store) -> None:
    """Raises `UserError` for a store that waits for its first rows."""
    if store.waits:
        raise UserError(
            "the bank's first clusters are of the untrained network's features, which are not there yet: call"
            " Store.begin with a unit vector of every image, as vantage.train does, or take first=1"
        )
