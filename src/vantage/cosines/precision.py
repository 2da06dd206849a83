"""The precision in which similarities are computed, and a bound on memory that all paths to a log-partition share."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["BUDGET", "full", "in_full"]

BUDGET = 256 * 2**20
"""Maximum bytes of a table or of a chunk of it."""


def full(vector: Float[Tensor, "*m d"]) -> Float[Tensor, "*m d"]:
    """float64 unchanged, everything else as float32."""
    return vector if vector.dtype == torch.float64 else vector.float()


def in_full(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a backward pass so that it keeps its precision even if it is called under autocast."""

    @functools.wraps(backward)
    def full(ctx: Any, gradient: Tensor) -> Any:
        with torch.autocast(gradient.device.type, enabled=False):
            return backward(ctx, gradient)

    return full
