"""The newest keys, first in, first out.

k: length of the queue   d: width
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from vantage.errors import UserError
from vantage.memory.store import Store
from vantage.records import Keys

__all__ = ["Queue", "QueueStore"]


@dataclass(frozen=True)
class Queue:
    """The newest keys (MoCo, He et al., arXiv 1911.05722).

    Starts with random unit vectors, which count as negatives until real keys have replaced them, as in the paper. Batch
    size and length are independent: writing wraps around, and only the newest keys of a batch longer than the queue
    are kept. Keys of the query's own image may be in the queue; add the rule `OtherImages` to mask them.
    """

    length: int = 65_536
    """Number of keys remembered."""

    def __post_init__(self) -> None:
        if self.length < 1:
            raise UserError(f"a queue of length {self.length} remembers nothing: give at least 1, or use InBatch()")

    def fit_to(self, images: int, batch_size: int) -> "Queue":
        """At most a tenth of the images (65,536 of 1.28 million is a twentieth), so that few keys show the query's own
        image; or four batches if that is more, but never more than half of the images."""
        room = max(1, images // 2)
        return Queue(min(self.length, max(images // 10, min(4 * batch_size, room))))

    def build(self, images: int, width: int) -> "QueueStore":
        """A queue of random unit vectors, drawn from torch's default generator."""
        return QueueStore(self.length, width)


class QueueStore(Store):
    """The store of `Queue`: a ring buffer of keys, their image numbers and the index of the oldest, all saved in
    checkpoints."""

    vector: Tensor
    image: Tensor
    oldest: Tensor

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.register_buffer("vector", normalize(torch.randn(length, width), dim=1))
        self.register_buffer("image", torch.full((length,), -1, dtype=torch.int64))
        self.register_buffer("oldest", torch.zeros((), dtype=torch.int64))

    @property
    def room(self) -> int:
        """The queue's length."""
        return len(self.vector)

    def begin(self, keys: Keys) -> None:
        """Remember these keys, as after a step."""
        self.write(keys)

    def read(self, fresh: Keys) -> Keys:
        """All keys of earlier steps. They are not copied: write only after the loss has been computed."""
        return Keys(self.vector, self.image)

    @torch.no_grad()
    def write(self, fresh: Keys) -> None:
        """Replace the oldest keys, wrapping around."""
        length = len(self.vector)
        newest = fresh.rows(slice(max(0, len(fresh) - length), None))
        place = (torch.arange(len(newest), device=self.vector.device) + self.oldest) % length
        self.vector[place] = newest.vector.to(self.vector.dtype)
        self.image[place] = newest.image
        self.oldest.copy_((self.oldest + len(newest)) % length)
