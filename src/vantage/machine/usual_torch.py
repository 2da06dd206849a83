"""Torch as Vantage works with it, whatever a script or notebook around it has set."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

__all__ = ["usual_torch"]

_AUTOCAST = ("cpu", "cuda", "mps", "xpu")
"""The kinds of devices whose autocast is left."""


@contextmanager
def usual_torch() -> Iterator[None]:
    """Within the block, or the function it decorates, torch has its defaults: gradients, no inference mode, no
    autocast, float32, and new tensors on the CPU. Afterwards the caller's settings are back.

    Numbers that are recorded or cached must not depend on these settings, and training must not fail because of them.
    The default dtype is one of the whole process, so other threads see it change.
    """
    dtype = torch.get_default_dtype()
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        if _autocast_depth():
            for kind in filter(torch.is_autocast_enabled, _AUTOCAST):
                stack.enter_context(torch.autocast(kind, enabled=False))
            _leave_autocast(stack)
        if torch.get_default_device().type != "cpu":  # entered only then: such a context slows every operation
            stack.enter_context(torch.device("cpu"))
        if dtype != torch.float32:
            stack.callback(torch.set_default_dtype, dtype)
            torch.set_default_dtype(torch.float32)
        yield


def _leave_autocast(stack: ExitStack) -> None:
    """Let the next autocast be the outermost. Torch forgets the weights that it has cast only at the end of that one:
    within the caller's, each step of training would use the weights of the first."""
    for _ in range(_autocast_depth()):
        torch.autocast_decrement_nesting()
        stack.callback(torch.autocast_increment_nesting)
    torch.clear_autocast_cache()


def _autocast_depth() -> int:
    """In how many autocast contexts this thread is."""
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()
