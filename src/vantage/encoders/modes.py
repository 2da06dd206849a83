"""The mode of a network: training or evaluation."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["in_evaluation"]


@contextmanager
def in_evaluation(module: nn.Module) -> Iterator[None]:
    """Evaluation mode within a block. Afterwards each submodule returns to its own mode, since modes may differ.

    Threads that share a module must not enter with it in training mode."""
    in_training = [part for part in module.modules() if part.training]
    if in_training:  # setting modes takes much longer than looking
        module.eval()
    try:
        yield
    finally:
        for part in in_training:
            part.training = True
