"""The few operations that differ when a run has several processes. On one process each does nothing.

w: processes   b: rows here
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from jaxtyping import Shaped
from torch import Tensor

__all__ = ["add_up", "count", "device", "gather", "leave", "own_rows", "rank", "total"]


def count() -> int:
    """The number of processes that train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if count() > 1 else 0


def device() -> torch.device:
    """The device on which tensors must lie to be exchanged between processes."""
    on_gpu = count() > 1 and dist.get_backend() == "nccl"
    return torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")


def leave() -> None:
    """From here on this process works alone."""
    if count() > 1:
        dist.destroy_process_group()


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Tensor) -> Tensor:
        parts = [torch.empty_like(rows) for _ in range(count())]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        # Summed, since every process compares its queries with these rows; DDP then averages parameter gradients.
        # Cloned, since autograd may share this tensor.
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(gradient)
        return own_rows(gradient)


def gather(rows: Shaped[Tensor, "b *s"]) -> Shaped[Tensor, "w_b *s"]:
    """The rows of all processes, in the order of their ranks.

    The gradient is the sum of the gradients of all processes, so that after the usual mean of parameter gradients two
    processes equal one with the joint batch. Every process must hold the same number of rows.
    """
    return _Gather.apply(rows) if count() > 1 else rows  # pyright: ignore[reportReturnType]


def own_rows(rows: Shaped[Tensor, "w_b *s"]) -> Shaped[Tensor, "b *s"]:
    """The part of gathered rows that belongs to this process."""
    return rows.chunk(count())[rank()]


def total(number: Tensor) -> Tensor:
    """Sum over processes, without gradient."""
    if count() == 1:
        return number
    number = number.detach().clone()
    dist.all_reduce(number)
    return number


def add_up(tensors: Sequence[Tensor]) -> None:
    """Make each tensor, in place, the sum of those of all processes, by one exchange. All are of one dtype."""
    if count() == 1 or not tensors:
        return
    sums = total(torch.cat([tensor.flatten() for tensor in tensors]))
    for tensor, part in zip(tensors, sums.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))
