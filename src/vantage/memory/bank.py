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
    """Whether each process holds the rows of its share of the images, and not all of them: for banks that do not fit a
    device. Losses are those of a whole bank, to rounding; steps exchange more (docs/scale.md)."""

    def __post_init__(self) -> None:
        if not 0 <= self.momentum <= 1:
            raise UserError(f"bank momentum {self.momentum} must lie in [0, 1]: it is the weight on the old row")

    def build(self, images: int, width: int) -> "BankStore":
        """A bank of random unit vectors, drawn from torch's default generator."""
        return BankStore(images, width, self.momentum, self.sharded)


class BankStore(RowStore):
    """Row i belongs to image i; saved."""

    def __init__(self, images: int, width: int, momentum: float, sharded: bool = False) -> None:
        super().__init__(images, width, sharded)
        self.momentum = momentum

    def read(self, fresh: Keys) -> Pool:
        """Every row as earlier steps left it. Not a copy: write only after the loss has been computed."""
        keys = Keys(self.vector, self.image)
        return Shard(keys, self.share.start, self.images) if self.is_sharded else keys

    @torch.no_grad()
    def write(self, fresh: Keys) -> None:
        """Move the rows of these images. Several keys of one image count as their mean.

        Raises `UserError` for an image number that the bank does not have.
        """
        if len(fresh) == 0:
            return
        check_images(fresh.image, self.images)
        move_rows(self, fresh, self.momentum)


def check_images(image: Int[Tensor, "b"], rows: int) -> None:
    """Raises `UserError` for an image that a bank of `rows` rows does not have; on a device see `demand`."""
    if image.device.type != "cpu":
        demand(
            ((image >= 0) & (image < rows)).all(), f"an image was to be written to a bank of {rows} that it is not of"
        )
        return
    low, high = int(image.min()), int(image.max())
    if low < 0 or high >= rows:
        raise UserError(
            f"image {low if low < 0 else high} was to be written to a bank of {rows} images: "
            "build the learner for the data set it trains on"
        )


def move_rows(store: RowStore, fresh: Keys, momentum: float) -> None:
    """M ← normalize(momentum·M + (1 − momentum)·f) for the rows of these images that this process holds, in place."""
    vector, place = store.vector, fresh.image
    mean, mine = _mean_of_image(fresh.image, fresh.vector.to(vector.dtype)), None
    if store.is_sharded:
        place, mine = rows_here(fresh.image, store.share.start, len(vector))
    old = vector[place]
    new = normalize(torch.lerp(mean, old, momentum), dim=1)
    if mine is not None:  # a row of elsewhere becomes one that is here, or is left as it was: no device is asked
        first_mine = mine.long().argmax()
        place = torch.where(mine, place, place[first_mine])
        new = torch.where(mine[:, None], new, torch.where(mine[first_mine], new[first_mine], old[first_mine]))
    vector[place] = new


def _mean_of_image(image: Int[Tensor, "b"], vector: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
    """For each vector the mean of those of its image, so that a row that is written twice gets the same value twice."""
    if image.device.type == "cpu" and len(image.unique()) == len(image):
        return vector
    numbers, order = image.sort(stable=True)
    first = first_of_each(numbers)
    place = torch.empty_like(order).index_copy_(0, order, first.cumsum(0) - 1)
    total, times = torch.zeros_like(vector).index_add_(0, place, vector), vector.new_zeros(len(image))
    times.index_add_(0, place, torch.ones_like(times))
    return (total / times[:, None])[place]


def first_of_each(numbers: Int[Tensor, "b"]) -> Bool[Tensor, "b"]:
    """Whether a number is the first of its kind, in numbers in order."""
    first = torch.ones_like(numbers, dtype=torch.bool)
    first[1:] = numbers[1:] != numbers[:-1]
    return first
