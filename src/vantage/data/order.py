"""Which process sees which image at which step: a function of seed and epoch, the same on every process.

n: images   t: steps of an epoch   r: images of a step on one process
"""

import torch
from jaxtyping import Int
from torch import Tensor

from vantage.draws import mix
from vantage.errors import DataError

_ORDER, _IMAGE = 1, 2  # the purpose of a seed, so that an epoch's order and an image's crops are independent


def epoch_order(count: int, seed: int, epoch: int) -> Int[Tensor, "n"]:
    """A random order of `count` images for an epoch."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(mix(_ORDER, seed, epoch)))


def image_seed(seed: int, epoch: int, image: int) -> int:
    """The seed of one image's crops in one epoch."""
    return mix(_IMAGE, seed, epoch, image)


def steps_in(count: int, batch_size: int) -> int:
    """Whole batches of an epoch, each of `batch_size` images over all processes; raises `DataError` if none."""
    if batch_size < 1 or count < batch_size:
        raise DataError(
            f"batches of {batch_size} images were asked for, but there are {count} images. "
            f"Choose a batch size of 1 to {count}, or give more images"
        )
    return count // batch_size


def shares(order: Int[Tensor, "n"], batch_size: int, rank: int = 0, world_size: int = 1) -> Int[Tensor, "t r"]:
    """The images of one process, a row for each step.

    Global batch t is `order[t * batch_size : (t + 1) * batch_size]`, and process `rank` of `world_size` takes its
    rank-th slice. The remainder at the end of the order, which differs from epoch to epoch, is dropped.
    """
    if not 0 <= rank < world_size or batch_size % world_size:
        raise DataError(
            f"a batch of {batch_size} images cannot be shared equally: this is process {rank} of {world_size}. "
            f"Choose a batch size that is a multiple of {world_size}"
        )
    steps, own = steps_in(len(order), batch_size), batch_size // world_size
    return order[: steps * batch_size].view(steps, batch_size)[:, rank * own : (rank + 1) * own]
