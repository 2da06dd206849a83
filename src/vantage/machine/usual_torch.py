"""Torch as Vantage works with it, whatever a script or notebook around it has set."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

__all__ = ["usual_torch"]


@contextmanager
def usual_torch() -> Iterator[None]:
    """Within the block, or the function it decorates, torch has its defaults: gradients, no inference mode, no
    autocast, float32, and new tensors on the CPU. Afterwards the caller's settings are back.

    Numbers that are recorded or cached must not depend on these settings, and training must not fail because of them.
    """
    dtype = torch.get_default_dtype()
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        if torch.get_default_device().type != "cpu":  # entered only then: such a context slows every operation
            stack.enter_context(torch.device("cpu"))
        if dtype != torch.float32:
            stack.callback(torch.set_default_dtype, dtype)
            torch.set_default_dtype(torch.float32)
        yield
