"""What banks with clusters share: labeled rows, and how a write moves them.

m: images   b: images of a step   d: width   c: clusterings
"""

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vantage.errors import UserError
from vantage.memory.bank import check_images, first_of_each, move_rows, random_rows
from vantage.memory.known import Known
from vantage.memory.store import Store
from vantage.records import Keys
from vantage.records.members import Members

__all__ = ["LabeledRows", "Written", "at_least", "check_begun", "label_rows", "read_rows", "write_rows"]


@runtime_checkable
class LabeledRows(Protocol):
    """The buffers of a store whose rows have labels."""

    vector: Tensor
    image: Tensor
    label: Tensor
    written: Tensor
    seed: Tensor
    members: Members
    rows_written: Known


class Written(NamedTuple):
    """What a write did."""

    image: Int[Tensor, "b"]
    """The images whose rows moved, in order."""

    old: Float[Tensor, "b d"]
    """Where their rows were."""

    first: Bool[Tensor, "b"] | None
    """Which of them is the first of its image; `None` where each image is there once."""


def at_least(part: object, least: int, *names: str) -> None:
    """Raises `UserError` for a field below `least`."""
    for name in names:
        if getattr(part, name) < least:
            raise UserError(f"{type(part).__name__}.{name} is {getattr(part, name)}: give at least {least}")


def check_begun(store: Store) -> None:
    """Raises `UserError` for a store that waits for its first rows."""
    if store.waits:
        raise UserError(
            "the bank's first clusters are of the untrained network's features, which are not there yet: call"
            " Store.begin with a unit vector of every image, as vantage.train does, or take first=1"
        )


def label_rows(store: Store, images: int, width: int, clusters: int, clusterings: int) -> None:
    """Give a store its buffers: random rows, each a cluster of its own, and a seed. Which clusterings were made follows
    from the number of rows written, which is saved. Raises `UserError` for more clusters than images."""
    if clusters > images:
        raise UserError(f"{clusters} clusters of {images} images cannot be made: ask for fewer, or use Run.fit")
    image = torch.arange(images)
    store.register_buffer("vector", random_rows(images, width))
    store.register_buffer("image", image)
    store.register_buffer("label", image[:, None].repeat(1, clusterings))
    store.register_buffer("written", torch.zeros((), dtype=torch.int64))
    store.register_buffer("seed", torch.randint(2**62, ()))


def read_rows(store: LabeledRows) -> Keys:
    """Every row and its labels as earlier steps left them. Not a copy: write only after the loss."""
    return Keys(store.vector, store.image, store.label, members=store.members)


def write_rows(store: LabeledRows, fresh: Keys, momentum: float) -> Written:
    """Move the rows of these images and count them. Raises `UserError` as `BankStore.write`."""
    check_images(fresh.image, len(store.vector))
    first = None
    if fresh.image.device.type == "cpu":
        image = fresh.image.unique()
    else:  # how many images differ, a device would have to be asked for
        image = fresh.image.sort().values
        first = first_of_each(image)
    old = store.vector[image]
    move_rows(store.vector, fresh, momentum)
    store.rows_written.add(store.written, len(image) if first is None else first.sum(), len(image))
    return Written(image, old, first)
