"""The mode of a network: training or evaluation."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["in_evaluation"]


@contextmanager
def in_evaluation(module: nn.Module) -> Iterator[None]:
    """Evaluation mode within a block. Afterwards each submodule returns to its own mode, since modes may differ."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in before:
            part.training = training
