"""Run one verb on several processes, started here or by torchrun."""

import atexit
import os

from vantage.errors import UserError

__all__ = ["join_processes"]


def join_processes(devices: int | None, device: str) -> str:
    """Start the processes that share the work, or join those that torchrun started; return this process's device.

    `devices` is the number of processes per machine; if omitted, 1, or as many as torchrun started. Raises `UserError`
    if one `device` was named for several processes, or if this machine has too few devices.
    """
    local_processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # torchrun sets both
    nodes = int(os.environ.get("WORLD_SIZE", "1")) // local_processes if "LOCAL_WORLD_SIZE" in os.environ else 1
    devices = devices or local_processes
    if devices * nodes == 1:
        return device
    if device not in ("auto", "cpu", "cuda"):
        raise UserError(
            f"--device {device} is one device, but {devices * nodes} share the work: give cpu, cuda or auto"
        )
    from vantage import processes
    from vantage.training.run import Hardware
    from vantage.training.session import start

    fabric = start(Hardware(accelerator=device, devices=devices, nodes=nodes, precision="32-true"))
    atexit.register(processes.leave)
    return str(fabric.device)
