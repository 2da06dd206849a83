"""The devices of this machine: which one a name means, and whether they suffice for a training."""

import os
import re

import torch

from vantage.composition.suggest import no_such
from vantage.errors import UserError, first_line

__all__ = ["check_hardware", "check_machines", "check_processes", "device_named", "names_here", "torchrun_shape"]

_SPOKEN = {"cuda": "CUDA device", "gpu": "GPU", "mps": "MPS device", "xpu": "XPU device"}
"""Kinds of device that people ask for by name, and what a message calls one."""

_LAUNCHERS = ("MASTER_ADDR", "TORCHELASTIC_RUN_ID", "SLURM_NTASKS", "LSB_JOBID", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
"""Environment variables. torchrun, or a scheduler that starts processes on several machines, sets one of them."""


def names_here() -> list[str]:
    """The names of the devices of this machine: cpu, and each accelerator that torch can use."""
    kind = torch.accelerator.current_accelerator()
    if kind is None or not torch.accelerator.is_available():
        return ["cpu"]
    return ["cpu", *(f"{kind.type}:{number}" for number in range(torch.accelerator.device_count()))]


def device_named(name: str) -> torch.device:
    """The device of a name such as cpu, cuda or cuda:0; auto is an accelerator if there is one.

    Raises `UserError` for any other name, listing the devices that are here, and for a device that does not answer.
    """
    here = names_here()
    kinds = {each.partition(":")[0] for each in here}
    if name == "auto":
        accelerator = torch.accelerator.current_accelerator()
        return torch.device("cpu") if accelerator is None or len(here) == 1 else accelerator
    if name not in (*here, *kinds, "cpu:0"):
        raise _not_here(name, here)
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as problem:  # torch reports some of these by an assertion
        reason = first_line(problem, 120)
        raise UserError(f"the device {name} does not answer ({reason}): give another, or cpu") from problem


def check_hardware(accelerator: str, devices: int, precision: str) -> None:
    """Raises `UserError` if this machine does not have the devices of a training, or they lack its precision."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if accelerator == "cuda" and not gpus:
        raise _not_here("cuda", names_here())
    on_gpu = gpus > 0 and accelerator != "cpu"
    if on_gpu and devices > gpus:
        raise UserError(f"{devices} devices are asked for, but this machine has {gpus}: give --devices {gpus} or fewer")
    if precision == "16-mixed" and not on_gpu:
        there = "the run is on the CPU" if gpus else "there is none here"
        raise UserError(f"precision 16-mixed needs a CUDA device, and {there}: give 32-true, or bf16-mixed")


def check_machines(nodes: int) -> None:
    """Raises `UserError` if several machines are asked for and nothing has started the others: this one would wait
    for them for half an hour."""
    if nodes > 1 and not any(name in os.environ for name in _LAUNCHERS):
        raise UserError(
            f"{nodes} machines are asked for, but this process was not started by torchrun, which tells it where they"
            f" meet: run the same command by torchrun --nnodes {nodes} on each of them, or give --nodes 1"
        )


def torchrun_shape() -> tuple[int, int] | None:
    """How many processes torchrun started on each machine, and on how many machines; None if it started none."""
    if not {"LOCAL_WORLD_SIZE", "WORLD_SIZE"} <= os.environ.keys():
        return None
    here = int(os.environ["LOCAL_WORLD_SIZE"])
    return here, int(os.environ["WORLD_SIZE"]) // here


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
            " and --nodes say what was started, or omit them under torchrun"
        )


def _not_here(name: str, here: list[str]) -> UserError:
    """The error for a device that this machine lacks: it names the kind if none of it is here, else a similar one."""
    kind = re.sub(r":\d+$", "", name.lower())
    missing = kind in _SPOKEN and not any(each.startswith(f"{kind}:") for each in here)
    if missing and (kind != "gpu" or len(here) == 1):
        reason = " (torch was installed without CUDA)" if kind == "cuda" and not torch.backends.cuda.is_built() else ""
        return UserError(
            f"there is no {_SPOKEN[kind]} here{reason}, but {name!r} was asked for: give {', '.join(here)} or auto"
        )
    if kind == "gpu":
        return UserError(f"there is no device {name!r}; did you mean {here[1]}?")
    return no_such("device", name, ["auto", *here])
