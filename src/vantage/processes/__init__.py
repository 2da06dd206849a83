"""The few operations that differ if a run has several processes. With one process, each is a no-op.

w: processes   b: rows on this process   p: accumulated parts
"""

import gc
from collections.abc import Sequence

import torch
import torch.distributed as dist
from jaxtyping import Shaped
from torch import Tensor

__all__ = ["add_up", "count", "device", "gather", "gather_joint", "leave", "own_rows", "own_total", "rank", "total"]


def count() -> int:
    """The number of processes that train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if count() > 1 else 0


def device() -> torch.device:
    """The device that tensors must be on to be exchanged between processes."""
    on_gpu = count() > 1 and dist.get_backend() == "nccl"
    return torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")


def leave() -> None:
    """Leave the group: from here on, this process works alone. Gloo's threads end: one that still lets go of tensors
    when Python ends would abort the process."""
    if count() > 1:
        gc.collect()  # a model that was wrapped for several processes refers to itself, and would keep the threads
        dist.destroy_process_group()


def _exchangeable(tensor: Tensor) -> Tensor:
    """The tensor on a device where it can be exchanged: NCCL cannot exchange CPU tensors, which a trial uses."""
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

    The gradient is the sum of the gradients of all processes. With the usual mean of parameter gradients, two processes
    are then equivalent to one with the joint batch. Every process must hold the same number of rows.
    """
    return _Gather.apply(rows) if count() > 1 else rows  # pyright: ignore[reportReturnType]


def gather_joint(rows: Shaped[Tensor, "p_b *s"], parts: int) -> Shaped[Tensor, "p_w_b *s"]:
    """The rows of all processes in the order of the joint batch: the first of `parts` accumulated parts of every
    process, then their second, and so on."""
    return gather(rows) if parts == 1 else torch.cat([gather(part) for part in rows.chunk(parts)])


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
    """This process's rows of the sum over all processes: the reverse of `gather`. Each of the two is the gradient of
    the other."""
    return _OwnTotal.apply(rows) if count() > 1 else rows  # pyright: ignore[reportReturnType]


def total(number: Tensor) -> Tensor:
    """Sum over all processes, without gradient."""
    if count() == 1:
        return number
    there = _exchangeable(number.detach()).clone()
    dist.all_reduce(there)
    return there.to(number.device)


def add_up(tensors: Sequence[Tensor]) -> None:
    """Replace each tensor, in place, by its sum over all processes, in one exchange. All must have the same dtype."""
    if count() == 1 or not tensors:
        return
    sums = total(torch.cat([tensor.flatten() for tensor in tensors]))
    for tensor, part in zip(tensors, sums.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))
