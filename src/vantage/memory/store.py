"""The contract of memories: a frozen choice, and the store built from it, whose state is saved buffers.

Stores are read with this step's fresh keys, gathered from all processes, before the loss, and written after the
optimizer step; so no key meets itself. Every process holds the same content, but for a bank that is dealt out, of which
each has its share (`vantage.memory.rows`).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import nn

from vantage.errors import UserError
from vantage.records import Keys, Pool

__all__ = ["Memory", "Store", "StoreOf"]


class Store(nn.Module, ABC):
    """Remembered keys. Everything that changes is a registered, saved buffer."""

    @abstractmethod
    def read(self, fresh: Keys) -> Pool:
        """The pool that this step's queries are compared with. Remembered vectors carry no gradient."""

    @abstractmethod
    def write(self, fresh: Keys) -> None:
        """Remember this step's keys."""

    @property
    def waits(self) -> bool:
        """Whether it waits for `begin`: `vantage.train` passes it the untrained network's vector of every image."""
        return False

    @property
    def room(self) -> int:
        """How many keys of earlier steps it holds, which `begin` can fill in; 0: none, and there is no `begin`."""
        return 0

    @property
    def share(self) -> slice:
        """Which of the `room` keys `begin` takes on this process: all, unless the store is dealt out."""
        return slice(0, self.room)

    def begin(self, keys: Keys) -> None:
        """Start from unit vectors of `room` images, or of all images where they are fewer, each once, or of the
        `share` of them; a bank's are in the order of its rows. Called before the first step of a run that starts from
        another, and where a store `waits`. Raises `UserError` where there is no room."""
        raise UserError(f"{type(self).__name__} has no room for keys of earlier steps: nothing can be begun")

    def rehearse(self) -> int:
        """Do once, so that its time can be measured, what comes up between steps (a clustering); returns how often an
        epoch repeats it. By default nothing comes up."""
        return 0


@runtime_checkable
class Memory(Protocol):
    """The frozen choice of a store."""

    def build(self, images: int, width: int) -> Store:
        """A store for a data set of `images` images and vectors of `width` numbers."""
        ...


@dataclass(frozen=True)
class StoreOf:
    """The store of an earlier branch, read by this one too: one bank serves two contrasts (InterCLR, PIRL).

    Only the branch that owns the store writes to it, so what this one names in `Branch.pool` is not remembered.
    """

    branch: int = 0
    """Number of the branch that owns the store."""

    def __post_init__(self) -> None:
        if self.branch < 0:
            raise UserError(f"StoreOf({self.branch}): branches are numbered from 0")
