"""What started this process beside others: torchrun, srun, mpirun, or Lightning from the first process.

The variables of torchrun say it to torch, Lightning and Vantage. `describe_as_torchrun` sets them for srun and mpirun.
"""

import os
import re
from dataclasses import dataclass

from vantage.errors import UserError

__all__ = [
    "check_machines",
    "check_processes",
    "describe_as_torchrun",
    "forget_others",
    "is_first_here",
    "is_one_of_several",
    "launched_shape",
    "launcher",
    "local_processes",
]

_LAUNCHER = "VANTAGE_LAUNCHER"
"""Environment variable that keeps which program started the processes that were described."""

_MPI = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)
"""The variables of Open MPI, and of MPICH and Intel MPI: rank and number of processes, in all and on this machine."""

_MEETING = ("MASTER_ADDR", "TORCHELASTIC_RUN_ID", "LSB_JOBID")
"""Environment variables. What starts processes on several machines sets one of them, if it is not described."""


_OTHERS = ("RANK", "LOCAL_RANK", "GROUP_RANK", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID")
"""Environment variables by which a process knows of others."""


@dataclass(frozen=True)
class _Launch:
    """One process among those that a program other than torchrun started."""

    launcher: str
    rank: int
    count: int
    local_rank: int
    local_count: int
    address: str
    """Name of the machine of rank 0, or "" if it is unknown."""

    job: int
    """A number that all processes of this start share, and others hardly do."""


def describe_as_torchrun() -> None:
    """If srun or mpirun started several processes, set the environment variables that torchrun would set.

    Nothing changes under torchrun, in processes that Lightning started, and for a single process. Raises `UserError` if
    the machines have unequal numbers of processes, or if mpirun uses several and `MASTER_ADDR` is not set.
    """
    if is_one_of_several():
        return
    launch = _by_mpirun() or _by_srun()
    if launch is None or launch.count == 1:
        return
    address = os.environ.get("MASTER_ADDR", launch.address)
    if launch.count % launch.local_count:
        raise UserError(
            f"{launch.launcher} started {launch.count} processes, {launch.local_count} of them on this machine: start"
            " the same number on each machine"
        )
    if not address:
        raise UserError(
            f"mpirun started processes on {launch.count // launch.local_count} machines, and nothing says where they"
            " meet: set MASTER_ADDR to the name of the first machine, or use torchrun"
        )
    os.environ |= {
        _LAUNCHER: launch.launcher,
        "RANK": str(launch.rank),
        "WORLD_SIZE": str(launch.count),
        "LOCAL_RANK": str(launch.local_rank),
        "LOCAL_WORLD_SIZE": str(launch.local_count),
        "GROUP_RANK": str(launch.rank // launch.local_count),
        "MASTER_ADDR": address,
        "MASTER_PORT": os.environ.get("MASTER_PORT", str(15_000 + launch.job % 10_000)),
    }


def _by_mpirun() -> _Launch | None:
    for names in _MPI:
        if all(os.environ.get(name, "").isdecimal() for name in names):
            rank, count, local_rank, local_count = (int(os.environ[name]) for name in names)
            job = os.environ.get("PMIX_NAMESPACE", str(os.getppid())).encode()
            address = "127.0.0.1" if count == local_count else ""
            return _Launch("mpirun", rank, count, local_rank, local_count, address, int.from_bytes(job) % 9973)
    return None


def _by_srun() -> _Launch | None:
    names = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_NODEID")
    if not all(os.environ.get(name, "").isdecimal() for name in names):
        return None
    from lightning_fabric.plugins.environments.slurm import SLURMEnvironment

    rank, count, local_rank, job, step, node = (int(os.environ[name]) for name in names)
    tasks = _tasks_of_nodes(os.environ.get("SLURM_STEP_TASKS_PER_NODE", ""))
    local_count = tasks[node] if node < len(tasks) else count
    nodes = os.environ.get("SLURM_STEP_NODELIST", "127.0.0.1")
    address = SLURMEnvironment.resolve_root_node_address(nodes)
    return _Launch("srun", rank, count, local_rank, local_count, address, job + step)


def _tasks_of_nodes(text: str) -> list[int]:
    """The number of tasks on each node, from Slurm's short form such as 4(x2),1."""
    parts = re.findall(r"(\d+)(?:\(x(\d+)\))?", text)
    return [int(tasks) for tasks, times in parts for _ in range(int(times or 1))]


def launcher() -> str:
    """Which of srun and mpirun started this process among several; "" for all others."""
    return os.environ.get(_LAUNCHER, "")


def forget_others() -> None:
    """Remove the environment variables by which this process knows of others: from here on, it works alone."""
    for name in (*_OTHERS, _LAUNCHER):
        os.environ.pop(name, None)


def launched_shape() -> tuple[int, int] | None:
    """How many processes were started on each machine, and on how many machines; None if none were started."""
    if not {"LOCAL_WORLD_SIZE", "WORLD_SIZE"} <= os.environ.keys():
        return None
    here = int(os.environ["LOCAL_WORLD_SIZE"])
    return here, int(os.environ["WORLD_SIZE"]) // here


def local_processes(otherwise: int = 1) -> int:
    """How many processes were started on this machine, or another number if none were."""
    shape = launched_shape()
    return shape[0] if shape else otherwise


def is_first_here() -> bool:
    """Whether this is the first of the processes on its machine, or the only one."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def is_one_of_several() -> bool:
    """Whether another process (the first of several, or a launcher) started this one for the same run."""
    return any(name in os.environ for name in ("RANK", "LOCAL_RANK", "NODE_RANK", "TORCHELASTIC_RUN_ID"))


def check_machines(nodes: int) -> None:
    """Raises `UserError` if several machines are asked for and nothing has started the others: this one would wait
    for them for half an hour."""
    if nodes > 1 and not any(name in os.environ for name in _MEETING):
        raise UserError(
            f"{nodes} machines are asked for, but this process was not started by torchrun, which tells it where they"
            f" meet: run the same command by torchrun --nnodes {nodes} on each of them, or give --nodes 1"
        )


def check_processes(devices: int, nodes: int) -> None:
    """Raises `UserError` unless as many processes were started as there are devices on all machines: each would train
    a run of its own, in the same folder. Nothing is checked if this process knows of no others."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return
    rank, count = (os.environ[name] for name in ("RANK", "WORLD_SIZE"))
    if not (rank.isdecimal() and count.isdecimal() and int(rank) < int(count)):
        raise UserError(f"RANK is {rank} and WORLD_SIZE {count}, but ranks count from 0: unset both, or use torchrun")
    if int(count) not in (1, devices * nodes):  # a managed container says 1, and Fabric starts the others
        raise UserError(
            f"{count} processes were started, but the run has {devices} device(s) on {nodes} machine(s): let --devices"
            f" and --nodes say what was started, or omit them under {launcher() or 'torchrun'}"
        )
