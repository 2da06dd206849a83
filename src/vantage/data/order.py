"""Which process sees which image at which step: a function of seed and epoch, the same on every process.

n: images   t: steps of an epoch   r: images of a step on one process   s: blocks + 1   k: images returned
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from vantage.draws import Purpose, mix, permutation
from vantage.errors import DataError

WINDOW = 1 << 20
"""Images of a blocked source that are shuffled together, unless the caller sets another number."""


def epoch_order(count: int, seed: int, epoch: int, *window: int) -> Int[Tensor, "n"]:
    """A random order of `count` images for an epoch, or of those in one of its windows."""
    return permutation(count, mix(Purpose.EPOCH_ORDER, seed, epoch, *window))


class EpochOrder:
    """An epoch's order, made window by window, so that a billion images need no more memory than a million.

    A source with one block, or with at most `window` images, is ordered by `epoch_order`. Otherwise its blocks (shards)
    are put in random order, neighbors with about `window` images in all form a window, and each window is shuffled.
    Everything is a function of (blocks, seed, epoch, window): neither processes nor workers nor a resume change it.
    """

    def __init__(self, starts: Int[Tensor, "s"], seed: int, epoch: int, window: int = WINDOW) -> None:
        """`starts` are the first numbers of the blocks, and the number of images (`blocks_of`)."""
        self._seed, self._epoch, count = seed, epoch, int(starts[-1])
        self._first, self._size = starts[:-1], starts.diff()
        if len(starts) > 2 and count > window:
            order = permutation(len(starts) - 1, mix(Purpose.BLOCK_ORDER, seed, epoch))
            self._first, self._size = self._first[order], self._size[order]
            begin = self._size.cumsum(0) - self._size
            _, blocks = (begin // window).unique_consecutive(return_counts=True)
        else:
            blocks = torch.tensor([len(starts) - 1])
        self._blocks = [0, *blocks.cumsum(0).tolist()]  # the first block of each window
        self._ends = self._size.cumsum(0)[torch.tensor(self._blocks[1:]) - 1]
        self._last: tuple[int, Int[Tensor, "n"]] | None = None

    def part(self, first: int, last: int) -> Int[Tensor, "k"]:
        """The images at the positions from `first` to before `last`."""
        parts, window = [], int(torch.searchsorted(self._ends, first, right=True))
        while first < last:
            begin, end = int(self._ends[window - 1]) if window else 0, int(self._ends[window])
            parts.append(self._window(window)[first - begin : last - begin])
            first, window = end, window + 1
        return torch.cat(parts)

    def _window(self, window: int) -> Int[Tensor, "n"]:
        if self._last is None or self._last[0] != window:
            blocks = slice(self._blocks[window], self._blocks[window + 1])
            first, size = self._first[blocks], self._size[blocks]
            before = size.cumsum(0) - size
            images = (first - before).repeat_interleave(size) + torch.arange(int(size.sum()))
            order = epoch_order(len(images), self._seed, self._epoch, *([window] if window else []))
            self._last = (window, images[order])
        return self._last[1]


def image_seed(seed: int, epoch: int, image: int) -> int:
    """The seed of one image's crops in one epoch."""
    return mix(Purpose.CROPS, seed, epoch, image)


def steps_in(count: int, batch_size: int) -> int:
    """Whole batches in an epoch, each of `batch_size` images over all processes; raises `DataError` if that is 0."""
    if batch_size < 1 or count < batch_size:
        raise DataError(
            f"batches of {batch_size} images were asked for, but there are {count} images. "
            f"Choose a batch size of 1 to {count}, or give more images"
        )
    return count // batch_size


@dataclass(frozen=True)
class BatchOrder:
    """How the images of an epoch become batches, and which of them one process takes.

    Batch t is cut into `accumulate` parts, and process `rank` of `world_size` takes the rank-th slice of each part, so
    that a part holds the same images on any number of processes. Raises `DataError` if the slices would not be equal.
    """

    batch_size: int
    """Images of a step, on all processes."""

    seed: int = 0
    """The order of an epoch follows from it and from the number of the epoch."""

    rank: int = 0
    """Number of this process."""

    world_size: int = 1
    """Number of processes."""

    accumulate: int = 1
    """Parts into which each process cuts its images of a step, to compute them one after the other."""

    window: int = WINDOW
    """Images of a blocked source that are shuffled together."""

    def __post_init__(self) -> None:
        slices = self.world_size * self.accumulate
        if not 0 <= self.rank < self.world_size or (self.world_size > 1 and self.batch_size % slices):
            raise DataError(
                f"a batch of {self.batch_size} images cannot be shared equally: this is process {self.rank} of "
                f"{self.world_size}, and a batch has {self.accumulate} accumulated part(s). Choose a multiple of "
                f"{slices} as batch size"
            )

    def epoch(self, starts: Int[Tensor, "s"], epoch: int) -> EpochOrder:
        """The order of an epoch, for images in blocks that start at these numbers."""
        return EpochOrder(starts, self.seed, epoch, self.window)

    def share(self, order: Int[Tensor, "n"]) -> Int[Tensor, "t r"]:
        """The images of this process among images in their order, a row for each step.

        The remainder at the end of the order, which differs from epoch to epoch, is dropped.
        """
        steps = steps_in(len(order), self.batch_size)
        parts = order[: steps * self.batch_size].view(steps, self.batch_size)
        if self.world_size == 1:
            return parts
        return parts.view(steps, self.accumulate, self.world_size, -1)[:, :, self.rank].flatten(1)
