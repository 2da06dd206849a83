"""No memory: the keys of this step are the pool."""

from dataclasses import dataclass

from vantage.memory.store import Store
from vantage.records import Keys

__all__ = ["InBatch", "InBatchStore"]


@dataclass(frozen=True)
class InBatch:
    """Compare with the keys of this step only, of all processes (SimCLR). Keys that learn get their gradient."""

    def build(self, images: int, width: int) -> "InBatchStore":
        """A store that keeps nothing."""
        return InBatchStore()


class InBatchStore(Store):
    """Hands the fresh keys back."""

    def read(self, fresh: Keys) -> Keys:
        """The fresh keys themselves."""
        return fresh

    def write(self, fresh: Keys) -> None:
        """Nothing to remember."""
