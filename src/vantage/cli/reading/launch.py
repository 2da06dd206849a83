"""Run one verb on several processes, started here or by a launcher; or on the first of them."""

import hashlib
import json
import math
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from vantage.cli.printing.console import Console
from vantage.errors import UserError
from vantage.machine.launchers import check_processes, forget_others, is_first_here, launched_shape, launcher

__all__ = ["does_the_work", "join_processes", "joined_for_a_while"]


_PATIENCE = 10.0
"""Seconds that other processes wait for the command of the first."""

_GREETING = b"vantage "
"""What comes before a command, since another program may use the port."""

_SHARING = {"reproduce": "; to share it, start one process on each machine, with --jobs N"}
"""What to do instead, for a verb that starts processes itself."""

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
    from vantage.training.computing.launch import open_fabric
    from vantage.training.run import Hardware

    fabric = open_fabric(Hardware(accelerator=device, devices=devices, nodes=nodes, precision="32-true"))
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


def does_the_work(verb: str, console: Console) -> bool:
    """Whether this process does the work of a verb that processes do not share: it is alone, or the first of those that
    a launcher started. From then on, it works as if it were alone.

    Raises `UserError` if srun or mpirun gave the first process another command: this one would be left undone.
    """
    count, rank = os.environ.get("WORLD_SIZE", ""), os.environ.get("RANK", "0")
    if not count.isdecimal() or int(count) < 2:
        return True
    heard = not launcher() or _same_as_first(verb, rank)
    of_several = f"{verb} needs one process: of the {count} that {launcher() or 'torchrun'} started,"
    if console.first:
        console.note(f"{of_several} the first does the work and the others end{_SHARING.get(verb, '')}")
        forget_others()
        return True
    if (is_first_here() or not heard) and not console.quiet:  # what is left undone would not be seen elsewhere
        print(f"{of_several} the first does the work and this one (RANK {rank}) ends", file=sys.stderr)
    return False


def _same_as_first(verb: str, rank: str) -> bool:
    """Whether this process knows that the first has the same command. The first waits for nobody, since a shell in the
    first of several tasks is alone: once it has ended, the others cannot know. Raises `UserError` if it has another."""
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    own = _GREETING + hashlib.blake2b(json.dumps(sys.argv[1:]).encode()).digest()
    if rank == "0":
        threading.Thread(target=_tell, args=(port, own), daemon=True).start()
        return True
    first = _hear(host, port)
    if first.startswith(_GREETING) and first != own:
        raise UserError(
            f"{launcher()} started different commands as one job, but only its first process does the work of {verb}:"
            " start each by a job of its own, with one process"
        )
    return first == own


def _tell(port: int, command: bytes) -> None:
    """Give the command to whoever asks, until this process ends; to nobody if the port is taken."""
    with suppress(OSError), socket.create_server(("", port)) as server:
        while True:
            with suppress(ConnectionError), server.accept()[0] as connection:  # who asked may have gone
                connection.sendall(command)


def _hear(host: str, port: int) -> bytes:
    """What the first process gives; nothing if it does not answer in time."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection((host, port), 1.0) as connection:
            return connection.makefile("rb").read()
        time.sleep(0.1)
    return b""
