"""A batch in parts, computed one after another to save memory.

How many queries of a batch have a positive is known only after its last part. Until then each part counts by its own
share of such queries (`Fresh.share`), and the gradients that have added up are divided by the mean share at the end:
they are then those of the mean over these queries, of all parts together.
"""

from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from vantage.data import Batch
from vantage.learner import Step

__all__ = ["RunningStatistics", "divide_gradients", "loss_of_part", "parts_of_batch"]


def parts_of_batch(batch: Batch, count: int) -> list[Batch]:
    """The batch cut into this many equal parts, in order."""
    if count == 1:
        return [batch]
    pixels = zip(*(view.chunk(count) for view in batch.pixels), strict=True)
    return [Batch(image, views) for image, views in zip(batch.image.chunk(count), pixels, strict=True)]


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


class RunningStatistics:
    """The running statistics of a network's BatchNorm layers during one step.

    Each part moves them from where they were before the step, and at the end they are the mean over the parts. They are
    linear in the statistics of batches, so they are then those of the joint batch, to rounding. With a single part
    nothing is done.
    """

    def __init__(self, module: nn.Module, parts: int) -> None:
        layers = module.modules() if parts > 1 else ()
        norms = [layer for layer in layers if isinstance(layer, _BatchNorm) and layer.track_running_stats]
        self.parts = parts
        self.values = [value for norm in norms for value in norm.buffers(recurse=False)]
        self.before = [value.clone() for value in self.values]
        self.totals = [torch.zeros_like(value) for value in self.values]

    @torch.no_grad()
    def forget(self) -> None:
        """Undo a pass: the values are again those before the step."""
        for value, before in zip(self.values, self.before, strict=True):
            value.copy_(before)

    def end_part(self) -> None:
        """Note where a part has moved the values, and go back for the next one."""
        for total, value in zip(self.totals, self.values, strict=True):
            total.add_(value)
        self.forget()

    @torch.no_grad()
    def end(self) -> None:
        """Set the values after the last part. Layers count the batches, not their parts."""
        for value, total in zip(self.values, self.totals, strict=True):
            value.copy_(total / self.parts)
