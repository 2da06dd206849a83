"""The few operations that differ when a run has several processes. On one process each does nothing.

w: processes   b: rows here
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from jaxtyping import Shaped
from torch import Tensor

__all__ = ["add_up", "count", "device", "gather", "leave", "own_rows", "own_total", "rank", "total"]


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


def _exchangeable(tensor: Tensor) -> Tensor:
    """It, where it can be exchanged: GPUs exchange nothing that lies on the CPU, where a run is tried."""
    return tensor.to(device()) if tensor.device.type == "cpu" else tensor


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Tensor) -> Tensor:
        here = _exchangeable(rows).contiguous()
        parts = [torch.empty_like(here) for _ in range(count())]
        dist.all_gather(parts, here)
        return torch.cat(parts).to(rows.device)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        # Summed, since every process compares its queries with these rows; DDP then averages parameter gradients.
        return own_rows(total(gradient.contiguous()))


def gather(rows: Shaped[Tensor, "b *s"]) -> Shaped[Tensor, "w_b *s"]:
    """The rows of all processes, in the order of their ranks.

    The gradient is the sum of the gradients of all processes, so that after the usual mean of parameter gradients two
    processes equal one with the joint batch. Every process must hold the same number of rows.
    """
    return _Gather.apply(rows) if count() > 1 else rows  # pyright: ignore[reportReturnType]


def own_rows(rows: Shaped[Tensor, "w_b *s"]) -> Shaped[Tensor, "b *s"]:
    """The part of gathered rows that belongs to this process."""
    return rows.chunk(count())[rank()]


class _OwnTotal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows: Tensor) -> Tensor:
        return own_rows(total(rows)).clone()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return gather(gradient)


def own_total(rows: Shaped[Tensor, "w_b *s"]) -> Shaped[Tensor, "b *s"]:
    """The rows of this process in the sum of what all processes have for the rows of all: the reverse of `gather`,
    whose gradient each makes of the other."""
    return _OwnTotal.apply(rows) if count() > 1 else rows  # pyright: ignore[reportReturnType]


def total(number: Tensor) -> Tensor:
    """Sum over processes, without gradient."""
    if count() == 1:
        return number
    there = _exchangeable(number.detach()).clone()
    dist.all_reduce(there)
    return there.to(number.device)


def add_up(tensors: Sequence[Tensor]) -> None:
    """Make each tensor, in place, the sum of those of all processes, by one exchange. All are of one dtype."""
    if count() == 1 or not tensors:
        return
    sums = total(torch.cat([tensor.flatten() for tensor in tensors]))
    for tensor, part in zip(tensors, sums.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))
