"""One key for every image of the data set.

m: images   b: images of a step   d: width
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from vantage.errors import UserError
from vantage.memory.rows import RowStore
from vantage.records import Keys, Pool, Shard, demand, rows_here

__all__ = ["Bank", "BankStore", "check_images", "first_of_each", "move_rows"]


@dataclass(frozen=True)
class Bank:
    """One unit vector per image, an exponential mean of its features over the epochs (IR, arXiv 1805.01978).

    M ← normalize(momentum·M + (1 − momentum)·f). `momentum` weighs the *old* row everywhere in Vantage: 0.5 in IR,
    CMC and PIRL, 0 in Ring's release, and 1 − ω where a release weighs the new feature by ω (InterCLR). Rows start
    uniform in the cube, then normalized.
    """

    momentum: float = 0.5
    """Weight on the old row, 0 (replace) to 1 (never change)."""

    sharded: bool = False
    """Whether each process holds only the rows of its share of the images, for banks too large for one device. Losses
    equal those of an unsharded bank, to rounding; each step communicates more (docs/scale.md)."""

    def __post_init__(self) -> None:
        if not 0 <= self.momentum <= 1:
            raise UserError(f"bank momentum {self.momentum} must lie in [0, 1]: it is the weight on the old row")

    def build(self, images: int, width: int) -> "BankStore":
        """A bank of random unit vectors, drawn from torch's default generator."""
        return BankStore(images, width, self.momentum, self.sharded)


class BankStore(RowStore):
    """The store of `Bank`: row i belongs to image i. The rows are saved in checkpoints."""

    def __init__(self, images: int, width: int, momentum: float, sharded: bool = False) -> None:
        super().__init__(images, width, sharded)
        self.momentum = momentum

    def read(self, fresh: Keys) -> Pool:
        """All rows, as earlier steps left them. They are not copied: write only after the loss has been computed."""
        keys = Keys(self.vector, self.image)
        return Shard(keys, self.share.start, self.images) if self.is_sharded else keys

    @torch.no_grad()
    def write(self, fresh: Keys) -> None:
        """Update the rows of these images. Several keys of one image count as their mean.

        Raises `UserError` for an image that has no row in the bank.
        """
        if len(fresh) == 0:
            return
        check_images(fresh.image, self.images)
        move_rows(self, fresh, self.momentum)


def check_images(image: Int[Tensor, "b"], rows: int) -> None:
    """Raises `UserError` for an image that has no row in a bank of `rows` rows; on a GPU see `demand`."""
    if image.device.type != "cpu":
        demand(((image >= 0) & (image < rows)).all(), f"an image that was to be written has no row in a bank of {rows}")
        return
    low, high = int(image.min()), int(image.max())
    if low < 0 or high >= rows:
        raise UserError(
            f"image {low if low < 0 else high} was to be written to a bank of {rows} images: "
            "build the learner for the data set it trains on"
        )


def move_rows(store: RowStore, fresh: Keys, momentum: float) -> None:
    """M ← normalize(momentum·M + (1 − momentum)·f), in place, for the rows of these images that this process holds."""
    vector, place = store.vector, fresh.image
    mean, mine = _mean_of_image(fresh.image, fresh.vector.to(vector.dtype)), None
    if store.is_sharded:
        place, mine = rows_here(fresh.image, store.share.start, len(vector))
    old = vector[place]
    new = normalize(torch.lerp(mean, old, momentum), dim=1)
    if mine is not None:  # others' rows repeat one of ours, or rewrite an old value: selecting ours needs a host sync
        first_mine = mine.long().argmax()
        place = torch.where(mine, place, place[first_mine])
        new = torch.where(mine[:, None], new, torch.where(mine[first_mine], new[first_mine], old[first_mine]))
    vector[place] = new


def _mean_of_image(image: Int[Tensor, "b"], vector: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
    """Each vector replaced by the mean over its image, so that a row written twice gets the same value both times."""
    if image.device.type == "cpu" and len(image.unique()) == len(image):
        return vector
    numbers, order = image.sort(stable=True)
    first = first_of_each(numbers)
    place = torch.empty_like(order).index_copy_(0, order, first.cumsum(0) - 1)
    total, times = torch.zeros_like(vector).index_add_(0, place, vector), vector.new_zeros(len(image))
    times.index_add_(0, place, torch.ones_like(times))
    return (total / times[:, None])[place]


def first_of_each(numbers: Int[Tensor, "b"]) -> Bool[Tensor, "b"]:
    """Whether each of the sorted numbers is the first of its value."""
    first = torch.ones_like(numbers, dtype=torch.bool)
    first[1:] = numbers[1:] != numbers[:-1]
    return first
