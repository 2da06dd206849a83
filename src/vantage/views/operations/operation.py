"""What an operation on images is: parameters drawn per image, then a deterministic core.

b: images   c: channels   h, w: height and width in pixels
"""

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vantage.errors import UserError


@runtime_checkable
class Operation(Protocol):
    """One step of making a view: a frozen dataclass whose fields are its settings.

    Only `draw` is random, and it draws on the CPU, so equal generators give equal views on every device. `apply` never
    changes its input and treats each image independently.

    A run whose views grow (`ProgressiveResizing`) makes them at full size and scales them down, since most operations
    have lengths in pixels. An operation that has none, and may as well see scaled images, says so by the line
    `any_size: ClassVar[bool] = True`. Its draws must not depend on the size. If all operations of a view say so, small
    views are made directly, which takes less time.
    """

    def draw(self, count: int, generator: torch.Generator) -> Any:
        """Parameters of `count` images: a CPU tensor, or a NamedTuple of CPU tensors, whose first axis is the image."""
        ...

    def apply(self, images: Float[Tensor, "b c h w"], parameters: Any) -> Float[Tensor, "b _ _ _"]:
        """The images, in [0, 1] until they are normalized, changed as `parameters` say."""
        ...


def uniform(count: int, between: tuple[float, float], generator: torch.Generator) -> Float[Tensor, "{count}"]:
    """`count` numbers between the two ends, on the CPU."""
    return torch.empty(count).uniform_(*between, generator=generator)


def coin(count: int, probability: float, generator: torch.Generator) -> Bool[Tensor, "{count}"]:
    """`count` coin tosses, each true with this probability."""
    return torch.rand(count, generator=generator) < probability


def indices(on: Bool[Tensor, "b"], device: torch.device) -> Int[Tensor, "m"]:
    """The indices of the images where `on` (a CPU tensor) is true, on `device`, without waiting for it."""
    return on.nonzero().squeeze(1).to(device, non_blocking=True)


def select(images: Float[Tensor, "b c h w"], where: Int[Tensor, "m"]) -> Float[Tensor, "m c h w"]:
    """The images at `where`, of which there is at least one. A single image is returned without a copy, so do not write
    to it."""
    return images if len(images) == 1 else images.index_select(0, where)


def put_back(
    images: Float[Tensor, "b c h w"], where: Int[Tensor, "m"], part: Float[Tensor, "m c h w"]
) -> Float[Tensor, "b c h w"]:
    """The images, with those at `where`, of which there is at least one, replaced by `part`."""
    return part if len(images) == 1 else images.index_copy(0, where, part)


def slice_rows(parameters: Any, start: int, stop: int) -> Any:
    """The parameters of the images from `start` to `stop`, in the same form."""
    if isinstance(parameters, Tensor):
        return parameters[start:stop]
    return type(parameters)(*(field[start:stop] for field in parameters))


def join_rows(parameters: Sequence[Any]) -> Any:
    """Parameters of several batches of images, one batch after the other, in the same form."""
    if isinstance(parameters[0], Tensor):
        return torch.cat(list(parameters))
    return type(parameters[0])(*(torch.cat(fields) for fields in zip(*parameters, strict=True)))


def check_probability(name: str, value: float) -> None:
    """Refuse a probability outside [0, 1] with a `UserError`."""
    if not 0 <= value <= 1:
        raise UserError(f"{name} must be a probability from 0 to 1, found {value}")


def check_range(name: str, between: tuple[float, float], most: float = math.inf) -> None:
    """Refuse, with a `UserError`, a range that is empty, not above 0, or beyond `most`."""
    low, high = between
    if not (0 < low <= high <= most):
        raise UserError(f"{name} must be two rising numbers above 0 and at most {most:g}, found ({low}, {high})")
