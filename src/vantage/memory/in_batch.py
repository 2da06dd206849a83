"""No memory: the keys of this step are the pool."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from vantage.memory.store import Store
from vantage.records import Keys

__all__ = ["InBatch", "InBatchStore"]


@dataclass(frozen=True)
class InBatch:
    """Compare only with the keys of this step, gathered from all processes (SimCLR). Keys that require a gradient get
    one."""

    reads_fresh: ClassVar[Literal[True]] = True

    def build(self, images: int, width: int) -> "InBatchStore":
        """A store that remembers nothing."""
        return InBatchStore()


class InBatchStore(Store):
    """Returns the fresh keys."""

    def read(self, fresh: Keys) -> Keys:
        """The fresh keys themselves."""
        return fresh

    def write(self, fresh: Keys) -> None:
        """Nothing to remember."""
