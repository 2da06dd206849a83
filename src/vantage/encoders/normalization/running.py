"""Running statistics of BatchNorm during a batch that comes in accumulated parts."""

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

__all__ = ["RunningStatistics"]


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

    def forget(self) -> None:
        """Undo a pass: the values are again those before the step."""
        for value, before in zip(self.values, self.before, strict=True):
            value.copy_(before)

    def end_part(self) -> None:
        """Note where a part has moved the values, and go back for the next one."""
        for total, value in zip(self.totals, self.values, strict=True):
            total.add_(value)
        self.forget()

    def end(self) -> None:
        """Set the values after the last part. Layers count the batches, not their parts."""
        for value, total in zip(self.values, self.totals, strict=True):
            value.copy_(total / self.parts)
