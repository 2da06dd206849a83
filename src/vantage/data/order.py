"""Which process sees which image at which step: a function of seed and epoch, the same on every process.

n: images   t: steps of an epoch   r: images of a step on one process   s: blocks + 1   k: images returned
"""

import torch
from jaxtyping import Int
from torch import Tensor

from vantage.draws import Purpose, mix
from vantage.errors import DataError

WINDOW = 1 << 20
"""Images of a blocked source that are shuffled together, unless the caller sets another number."""


def epoch_order(count: int, seed: int, epoch: int, *window: int) -> Int[Tensor, "n"]:
    """A random order of `count` images for an epoch, or of those in one of its windows."""
    return torch.randperm(
        count, generator=torch.Generator().manual_seed(mix(Purpose.EPOCH_ORDER, seed, epoch, *window))
    )


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
            permutation = torch.randperm(
                len(starts) - 1, generator=torch.Generator().manual_seed(mix(Purpose.BLOCK_ORDER, seed, epoch))
            )
            self._first, self._size = self._first[permutation], self._size[permutation]
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
            permutation = epoch_order(len(images), self._seed, self._epoch, *([window] if window else []))
            self._last = (window, images[permutation])
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


def shares(
    order: Int[Tensor, "n"], batch_size: int, rank: int = 0, world_size: int = 1, accumulate: int = 1
) -> Int[Tensor, "t r"]:
    """The images of one process, a row for each step.

    Global batch t is `order[t * batch_size : (t + 1) * batch_size]`, cut into `accumulate` parts, and process `rank` of
    `world_size` takes the rank-th slice of each part, so that a part holds the same images on any number of processes.
    The remainder at the end of the order, which differs from epoch to epoch, is dropped.
    """
    if not 0 <= rank < world_size or batch_size % (world_size * accumulate if world_size > 1 else 1):
        raise DataError(
            f"a batch of {batch_size} images cannot be shared equally: this is process {rank} of {world_size}, and a"
            f" batch has {accumulate} accumulated part(s). Choose a multiple of {world_size * accumulate} as batch size"
        )
    steps = steps_in(len(order), batch_size)
    parts = order[: steps * batch_size].view(steps, batch_size)
    if world_size == 1:
        return parts
    return parts.view(steps, accumulate, world_size, -1)[:, :, rank].flatten(1)
