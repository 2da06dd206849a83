"""Launch a run: open its devices, and connect its processes (Lightning Fabric)."""

import atexit
import inspect
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch.nn.parallel import DistributedDataParallel

from vantage import processes
from vantage.errors import UserError
from vantage.machine.allocator import keep_freed_memory
from vantage.machine.devices import check_hardware, has_bf16, uses_cuda
from vantage.machine.launchers import check_machines, launched_shape
from vantage.progress import Progress
from vantage.training.folder.same_run import check_same_command
from vantage.training.run import Hardware, Run

if TYPE_CHECKING:
    from lightning_fabric import Fabric
    from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
    from lightning_fabric.strategies.ddp import DDPStrategy

__all__ = ["launch", "open_fabric"]

# Every process updates its stores in the same way, so DDP need not broadcast buffers. Newer torch renamed the setting.
_NEW_NAME = "forward_sync_buffers" in inspect.signature(DistributedDataParallel.__init__).parameters
_ALONE: dict[str, Any] = {"forward_sync_buffers" if _NEW_NAME else "broadcast_buffers": False}

_FIRST = "VANTAGE_FIRST_PROCESS"  # environment variable: number of the process that started this one


def launch(run: Run, progress: Progress) -> "tuple[Fabric, Run]":
    """Fabric, launched, and the run with its precision set to 32-true if bf16 would be slow here."""
    hardware = run.hardware
    on_cuda = uses_cuda(hardware.accelerator)
    if hardware.precision == "bf16-mixed" and not has_bf16(on_cuda):
        progress.line("this hardware has no fast bfloat16: computing in float32 (32-true)")
        hardware = replace(hardware, precision="32-true")
    if hardware.compile:
        progress.line("steps are compiled: the first one at each size of views takes a minute or more")
    return open_fabric(hardware), replace(run, hardware=hardware)


def open_fabric(hardware: Hardware) -> "Fabric":
    """Fabric, launched, with its processes connected. Raises `UserError` if this machine has too few devices or lacks
    a compiler that is asked for, if there is no script to start several processes from, if the processes of the other
    machines were not started, or if srun or mpirun started different commands."""
    from lightning_fabric import Fabric  # slow to import; only training and shared work need it
    from lightning_fabric.strategies.ddp import DDPStrategy

    check_hardware(hardware.accelerator, hardware.devices, hardware.precision, hardware.compile)
    check_machines(hardware.nodes)
    several = hardware.processes > 1
    strategy = DDPStrategy(**_ALONE) if several else "auto"
    on_cuda = uses_cuda(hardware.accelerator)
    accelerator = ("cuda" if on_cuda else "cpu") if hardware.accelerator == "auto" else hardware.accelerator
    if accelerator == "cpu":
        keep_freed_memory()
    try:
        with _silent():
            fabric = Fabric(
                accelerator=accelerator,
                strategy=strategy,
                devices=hardware.devices,
                num_nodes=hardware.nodes,
                precision=hardware.precision,
                plugins=_environment(),
            )
    except (ValueError, RuntimeError) as problem:
        words = f"{hardware.devices} × {accelerator} on {hardware.nodes} machine(s), {hardware.precision}"
        raise UserError(f"the requested hardware ({words}) is not available: {problem}") from problem
    if isinstance(strategy, DDPStrategy):
        _check_script(strategy, hardware.processes)
        atexit.register(processes.leave)  # however this process ends: by an error, a signal, or in a script
    with _silent(), _ending_with_first():
        fabric.launch()
    if fabric.world_size != hardware.processes:
        raise UserError(
            f"{hardware.devices} device(s) on {hardware.nodes} machine(s) were asked for, but {fabric.world_size}"
            " process(es) were started: use --devices without a launcher, or torchrun"
        )
    check_same_command()
    return fabric


def _check_script(strategy: "DDPStrategy", processes: int) -> None:
    """Raises `UserError` if this process starts the others, and there is no script that they could run again. Fabric
    would start them all the same, and kill this one when they fail, with all that a notebook holds."""
    environment = strategy.cluster_environment
    starts = environment is not None and not environment.creates_processes_externally
    if starts and not os.path.isfile(getattr(sys.modules["__main__"], "__file__", None) or ""):
        raise UserError(
            f"a console or a notebook cannot start {processes} processes, since each runs the whole script: train from"
            " a script or by `vantage pretrain --devices`, or on one device"
        )


def _environment() -> "ClusterEnvironment | None":
    """What starts the other processes: this one, unless they were started already, or Lightning knows the scheduler.
    srun is described as torchrun; in other processes of a Slurm job, Lightning would take its one task for all."""
    from lightning_fabric.plugins.environments.lightning import LightningEnvironment
    from lightning_fabric.plugins.environments.slurm import SLURMEnvironment

    in_slurm = SLURMEnvironment.detect() and launched_shape() is None
    return LightningEnvironment() if in_slurm else None


@contextmanager
def _ending_with_first() -> Iterator[None]:
    """A context for starting the processes of this machine. If the first of them dies before all have met, the others
    end too: they would wait for it for half an hour. Later, a lost connection ends them."""
    first, met = os.environ.pop(_FIRST, ""), threading.Event()

    def watch() -> None:
        while not met.wait(1.0):
            if os.getppid() != int(first):
                os._exit(128 + signal.SIGTERM)

    if first:
        threading.Thread(target=watch, daemon=True).start()
    else:
        os.environ[_FIRST] = str(os.getpid())  # the processes that Fabric starts inherit it
    try:
        yield
    finally:
        met.set()
        os.environ.pop(_FIRST, None)


@contextmanager
def _silent() -> Iterator[None]:
    """A context in which Fabric prints neither its greetings nor its advice on precision."""
    logger = logging.getLogger("lightning_fabric")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
