"""One key for every image of the data set.

m: images   b: images of a step   d: width
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from vantage.errors import UserError
from vantage.memory.store import Store
from vantage.records import Keys, demand

__all__ = ["Bank", "BankStore", "check_images", "first_of_each", "move_rows", "random_rows"]


@dataclass(frozen=True)
class Bank:
    """One unit vector per image, an exponential mean of its features over the epochs (IR, arXiv 1805.01978).

    M ← normalize(momentum·M + (1 − momentum)·f). `momentum` weighs the *old* row everywhere in Vantage: 0.5 in IR,
    CMC and PIRL, 0 in Ring's release, and 1 − ω where a release weighs the new feature by ω (InterCLR). Rows start
    uniform in the cube, then normalized.
    """

    momentum: float = 0.5
    """Weight on the old row, 0 (replace) to 1 (never change)."""

    def __post_init__(self) -> None:
        if not 0 <= self.momentum <= 1:
            raise UserError(f"bank momentum {self.momentum} must lie in [0, 1]: it is the weight on the old row")

    def build(self, images: int, width: int) -> "BankStore":
        """A bank of random unit vectors, drawn from torch's default generator."""
        return BankStore(images, width, self.momentum)


class BankStore(Store):
    """Row i belongs to image i; saved."""

    vector: Tensor
    image: Tensor

    def __init__(self, images: int, width: int, momentum: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("vector", random_rows(images, width))
        self.register_buffer("image", torch.arange(images))

    @property
    def room(self) -> int:
        """A key for every image."""
        return len(self.vector)

    @torch.no_grad()
    def begin(self, keys: Keys) -> None:
        """Take these rows."""
        self.vector.copy_(keys.vector)

    def read(self, fresh: Keys) -> Keys:
        """Every row as earlier steps left it. Not a copy: write only after the loss has been computed."""
        return Keys(self.vector, self.image)

    @torch.no_grad()
    def write(self, fresh: Keys) -> None:
        """Move the rows of these images. Several keys of one image count as their mean.

        Raises `UserError` for an image number that the bank does not have.
        """
        if len(fresh) == 0:
            return
        check_images(fresh.image, len(self.vector))
        move_rows(self.vector, fresh, self.momentum)


def random_rows(images: int, width: int) -> Float[Tensor, "m d"]:
    """Unit vectors, uniform in the cube before they are normalized."""
    return normalize(torch.rand(images, width) * 2 - 1, dim=1)


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


def move_rows(vector: Float[Tensor, "m d"], fresh: Keys, momentum: float) -> None:
    """M ← normalize(momentum·M + (1 − momentum)·f) for the rows of these images, in place."""
    mean = _mean_of_image(fresh.image, fresh.vector.to(vector.dtype))
    vector[fresh.image] = normalize(torch.lerp(mean, vector[fresh.image], momentum), dim=1)


def _mean_of_image(image: Int[Tensor, "b"], vector: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
    """For each vector the mean of those of its image, so that a row that is written twice gets the same value twice."""
    if image.device.type == "cpu" and len(image.unique()) == len(image):
        return vector
    ordered, order = image.sort(stable=True)
    first = first_of_each(ordered)
    place = torch.empty_like(order).index_copy_(0, order, first.cumsum(0) - 1)
    total, times = torch.zeros_like(vector).index_add_(0, place, vector), vector.new_zeros(len(image))
    times.index_add_(0, place, torch.ones_like(times))
    return (total / times[:, None])[place]


def first_of_each(ordered: Int[Tensor, "b"]) -> Bool[Tensor, "b"]:
    """Whether a number is the first of its kind, in numbers in order."""
    first = torch.ones_like(ordered, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return first
