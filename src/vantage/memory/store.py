"""What every memory offers: a frozen choice, and the store built from it, whose state is saved buffers.

Stores are read with this step's fresh keys, gathered from all processes, before the loss, and written after the
optimizer step; so no key meets itself, and every process holds the same content.
"""

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

from torch import nn

from vantage.records import Keys

__all__ = ["Memory", "Store"]


class Store(nn.Module, ABC):
    """Remembered keys. Everything that changes is a registered, saved buffer."""

    @abstractmethod
    def read(self, fresh: Keys) -> Keys:
        """The pool that this step's queries are compared with. Remembered vectors carry no gradient."""

    @abstractmethod
    def write(self, fresh: Keys) -> None:
        """Remember this step's keys."""


@runtime_checkable
class Memory(Protocol):
    """The frozen choice of a store."""

    def build(self, images: int, width: int) -> Store:
        """A store for a data set of `images` images and vectors of `width` numbers."""
        ...
