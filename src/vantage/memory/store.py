"""The contract of memories: a frozen choice, and the store that it builds. All state of a store lives in registered
buffers, so it is saved in checkpoints.

A store is read before the loss, with this step's fresh keys gathered from all processes, and written after the
optimizer step, so no key is compared with itself. Every process holds the same content, except that of a sharded bank
each process holds its share (`vantage.memory.rows`).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

from torch import nn

from vantage.errors import UserError
from vantage.records import Keys, Pool

__all__ = ["Memory", "ReadsFresh", "Store", "StoreOf"]


class Store(nn.Module, ABC):
    """Remembered keys. Everything that changes must be a registered buffer that is saved in checkpoints."""

    @abstractmethod
    def read(self, fresh: Keys) -> Pool:
        """The pool that this step's queries are compared with. Remembered vectors carry no gradient."""

    @abstractmethod
    def write(self, fresh: Keys) -> None:
        """Remember this step's keys."""

    @property
    def waits(self) -> bool:
        """Whether `begin` must be called before the first step. `vantage.train` does so, with the untrained network's
        vector of every image."""
        return False

    @property
    def room(self) -> int:
        """How many keys of earlier steps the store holds, all of which `begin` can fill in; with 0, `begin` raises."""
        return 0

    @property
    def share(self) -> slice:
        """Which of the `room` keys `begin` takes on this process: all, unless the store is sharded."""
        return slice(0, self.room)

    def begin(self, keys: Keys) -> None:
        """Start from one unit vector for each of `room` images, or of all images if there are fewer; a sharded store
        takes only its `share` of them. A bank's vectors come in the order of its rows. Called before the first step of
        a warm start, and if the store `waits`. Raises `UserError` if the store has no room."""
        raise UserError(f"{type(self).__name__} has no room for keys of earlier steps: nothing can be begun")

    def rehearse(self) -> int:
        """Run once the work that happens between steps (a clustering), so that its time can be measured. Returns how
        often an epoch repeats it. By default there is no such work."""
        return 0


@runtime_checkable
class Memory(Protocol):
    """The frozen choice of a store."""

    def build(self, images: int, width: int) -> Store:
        """A store for a data set of `images` images and vectors of `width` numbers."""
        ...


@runtime_checkable
class ReadsFresh(Protocol):
    """A memory whose store gives keys of the same step, so that accumulated parts must be compared with each other."""

    reads_fresh: ClassVar[Literal[True]]


@dataclass(frozen=True)
class StoreOf:
    """The store of an earlier branch, which this one reads too, so that one bank serves two contrasts (InterCLR, PIRL).

    Only the branch that owns the store writes to it, so the views that this one names in `Branch.pool` are not
    remembered.
    """

    branch: int = 0
    """Number of the branch that owns the store."""

    def __post_init__(self) -> None:
        if self.branch < 0:
            raise UserError(f"StoreOf({self.branch}): branches are numbered from 0")
