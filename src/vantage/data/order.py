"""Who sees which image when: a function of the seed and the epoch, the same on every process.

n: images   t: steps of an epoch   r: images of a step on one process
"""

import torch
from jaxtyping import Int
from torch import Tensor

from vantage.draws import mix
from vantage.errors import DataError

_ORDER, _IMAGE = 1, 2  # what a seed is for, so that an epoch's order and an image's crop share nothing


def epoch_order(count: int, seed: int, epoch: int) -> Int[Tensor, "n"]:
    """A random order of `count` images for an epoch."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(mix(_ORDER, seed, epoch)))


def image_seed(seed: int, epoch: int, image: int) -> int:
    """The seed of one image's crops in one epoch."""
    return mix(_IMAGE, seed, epoch, image)


def steps_in(count: int, batch: int) -> int:
    """Whole batches of `batch` images, of all processes together, in an epoch; raises `DataError` if there is none."""
    if batch < 1 or count < batch:
        raise DataError(
            f"batches of {batch} images were asked for, but there are {count} images. "
            f"Choose a batch of 1 to {count}, or give more images"
        )
    return count // batch


def shares(order: Int[Tensor, "n"], batch: int, rank: int = 0, world: int = 1) -> Int[Tensor, "t r"]:
    """The images of one process, a row for each step.

    Global batch t is `order[t * batch : (t + 1) * batch]`, and process `rank` of `world` takes its rank-th slice. What
    is left over at the end of the order is dropped; it differs from epoch to epoch.
    """
    if not 0 <= rank < world or batch % world:
        raise DataError(
            f"a batch of {batch} images cannot be shared equally: this is process {rank} of {world}. "
            f"Choose a batch that is a multiple of {world}"
        )
    steps, own = steps_in(len(order), batch), batch // world
    return order[: steps * batch].view(steps, batch)[:, rank * own : (rank + 1) * own]
