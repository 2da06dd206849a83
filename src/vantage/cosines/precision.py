"""The precision that similarities are computed in, and what the paths to a log-partition share."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["BUDGET", "full", "in_full"]

BUDGET = 256 * 2**20
"""Bytes that a table or a chunk of it may take."""


def full(vector: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
    """float64 as it is, all else as float32."""
    return vector if vector.dtype == torch.float64 else vector.float()


def in_full(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward pass that keeps its precision even if it is called under autocast."""

    @functools.wraps(backward)
    def full(ctx: Any, gradient: Tensor) -> Any:
        with torch.autocast(gradient.device.type, enabled=False):
            return backward(ctx, gradient)

    return full
