"""Run one verb on several processes, started here or by a launcher."""

import atexit
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vantage.errors import UserError
from vantage.machine.launchers import check_processes, launched_shape

__all__ = ["join_processes", "joined_for_a_while"]


_STORES: list[Any] = []
"""Where processes met. Without torchrun, the first process holds the store, which the others need until they end."""


def join_processes(devices: int | None, device: str) -> str:
    """Start the processes that share the work, or join those that a launcher started; return this process's device.

    `devices` is the number of processes per machine; if omitted, 1, or as many as were started. Raises `UserError`
    if another number was started, if one `device` was named for several processes, or if this machine has too few
    devices.
    """
    started, nodes = launched_shape() or (1, 1)
    devices = devices or started
    check_processes(devices, nodes)
    if devices * nodes == 1:
        return device
    if device not in ("auto", "cpu", "cuda"):
        raise UserError(
            f"--device {device} is one device, but {devices * nodes} share the work: give cpu, cuda or auto"
        )
    from vantage import processes
    from vantage.training.computing.launch import open_fabric
    from vantage.training.run import Hardware

    fabric = open_fabric(Hardware(accelerator=device, devices=devices, nodes=nodes, precision="32-true"))
    atexit.register(processes.leave)
    return str(fabric.device)


@contextmanager
def joined_for_a_while(device: str) -> Iterator[bool]:
    """A context in which the processes that a launcher started are connected; yields whether there are several.

    They meet under a name of their own, because training connects them again, by the name that torch gives. `device` is
    that of the training: its kind chooses how tensors are exchanged.
    """
    if math.prod(launched_shape() or (1,)) == 1:
        yield False
        return
    import torch
    import torch.distributed as dist
    from torch.distributed.rendezvous import rendezvous

    from vantage import processes
    from vantage.machine.devices import uses_cuda

    on_cuda = uses_cuda(device)
    if on_cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    store, rank, count = next(iter(rendezvous("env://")))
    _STORES.append(store)
    meeting = dist.PrefixStore("opening the images", store)  # pyright: ignore[reportPrivateImportUsage]
    dist.init_process_group("nccl" if on_cuda else "gloo", store=meeting, rank=rank, world_size=count)
    try:
        yield True
    finally:
        processes.leave()
