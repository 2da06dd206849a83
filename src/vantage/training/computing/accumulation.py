"""A batch in parts, computed one after another to save memory.

How many queries of a batch have a positive is known only after its last part. Until then each part counts by its own
share of such queries (`Fresh.share`), and the gradients that have added up are divided by the mean share at the end:
they are then those of the mean over these queries, of all parts together.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.data import Batch
from vantage.step import Step, StepKeys

__all__ = ["Part", "divide_gradients", "loss_of_part", "parts_of_batch"]


class Part(NamedTuple):
    """One of the equal parts of a batch."""

    batch: Batch
    """Its images."""

    number: int
    """Its number, from 0."""

    views: list[Tensor] | None = None
    """Its views, if they were made before."""

    keys: StepKeys | None = None
    """Its keys, if they were encoded before."""


def parts_of_batch(batch: Batch, count: int) -> list[Part]:
    """The batch cut into this many equal parts, in order."""
    if count == 1:
        return [Part(batch, 0)]
    pixels = zip(*(view.chunk(count) for view in batch.pixels), strict=True)
    batches = [Batch(image, views) for image, views in zip(batch.image.chunk(count), pixels, strict=True)]
    return [Part(each, number) for number, each in enumerate(batches)]


def loss_of_part(result: Step, count: int) -> Float[Tensor, ""]:
    """What one of `count` parts adds to the gradients, before `divide_gradients`."""
    return result.loss if count == 1 else result.loss * result.fresh.share / count


@torch.no_grad()
def divide_gradients(parameters: Iterable[Tensor], shares: Sequence[Float[Tensor, ""]]) -> None:
    """Divide the gradients, in place, by the mean of the parts' shares; gradients of a single part stay as they are."""
    if len(shares) == 1:
        return
    mean = torch.stack(list(shares)).mean()
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.div_(mean.clamp(min=torch.finfo(mean.dtype).tiny))
