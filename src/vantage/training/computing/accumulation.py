"""A batch in parts, computed one after another to save memory.

How many queries of a batch have a positive is known only after its last part. Until then each part counts by its own
share of such queries (`Fresh.shares`), and the gradients that have added up are divided by the mean share at the end:
they are then those of the mean over these queries, of all parts together. Several branches have a share each, but their
gradients add up in one place. If these shares may differ, they are counted in a pass before (`must_count`).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.branch import Branch
from vantage.composition.fitting import parts_of
from vantage.data import Batch
from vantage.positives import AlwaysFinds
from vantage.schedules import Adaptive, Schedule
from vantage.step import Step, StepKeys

__all__ = ["Part", "divide_gradients", "loss_of_part", "must_count", "parts_of_batch", "with_weight"]


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


def with_weight(branches: Sequence[Branch], step: int) -> list[int]:
    """The numbers of the branches that may count at a step: all but those whose weight is 0."""
    weights = [branch.weight for branch in branches]
    return [n for n, weight in enumerate(weights) if weight(step) or _follows(weight)]


def _follows(weight: Schedule) -> bool:
    return any(isinstance(part, Adaptive) for part in parts_of(weight))


def must_count(branches: Sequence[Branch], numbers: Sequence[int]) -> bool:
    """Whether these branches may have different shares, which must then be known before the first gradient."""
    return len(numbers) > 1 and not all(isinstance(branches[n].positives, AlwaysFinds) for n in numbers)


def loss_of_part(result: Step, count: int, shares: Sequence[Float[Tensor, "k"]] = ()) -> Float[Tensor, ""]:
    """What one of `count` parts adds to the gradients; before `divide_gradients`, unless the `shares` of all parts are
    given."""
    if count == 1:
        return result.loss
    if not shares:
        return (result.terms * result.fresh.shares).sum() / count
    total = torch.stack(list(shares)).sum(0)
    return (result.terms * result.fresh.shares / total.clamp(min=torch.finfo(total.dtype).tiny)).sum()


@torch.no_grad()
def divide_gradients(parameters: Iterable[Tensor], shares: Sequence[Float[Tensor, ""]]) -> None:
    """Divide the gradients, in place, by the mean of the parts' shares; gradients of a single part stay as they are."""
    if len(shares) == 1:
        return
    mean = torch.stack(list(shares)).mean()
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.div_(mean.clamp(min=torch.finfo(mean.dtype).tiny))
