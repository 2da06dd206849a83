"""The devices of this machine: which one a name means, and whether they suffice for a training."""

import os
import re
import shlex
import shutil
import sys

import torch

from vantage.composition.suggest import no_such
from vantage.errors import UserError, first_line
from vantage.storage.provenance import processor_has_bf16

__all__ = ["check_hardware", "device_named", "has_bf16", "names_here", "uses_cuda"]

_SPOKEN = {"cuda": "CUDA device", "gpu": "GPU", "mps": "MPS device", "xpu": "XPU device"}
"""Kinds of device that people ask for by name, and what a message calls one."""


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


def check_hardware(accelerator: str, devices: int, precision: str, compiled: bool = False) -> None:
    """Raises `UserError` if this machine does not have the devices of a training, or they lack its precision, or if a
    training is `compiled` and there is no compiler."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if accelerator == "cuda" and not gpus:
        raise _not_here("cuda", names_here())
    on_gpu = gpus > 0 and accelerator != "cpu"
    if on_gpu and devices > gpus:
        raise UserError(f"{devices} devices are asked for, but this machine has {gpus}: give --devices {gpus} or fewer")
    if precision == "16-mixed" and not on_gpu:
        there = "the run is on the CPU" if gpus else "there is none here"
        raise UserError(f"precision 16-mixed needs a CUDA device, and {there}: give 32-true, or bf16-mixed")
    if compiled:
        _check_compiler()


def _check_compiler() -> None:
    """Raises `UserError` if this machine has no C++ compiler, which torch.compile calls: `CXX`, or the usual one."""
    compiler = os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")
    if shutil.which(shlex.split(compiler)[0]) is None:
        raise UserError(
            f"hardware.compile needs a C++ compiler, and there is no {compiler} here: install one, name it in the"
            " variable CXX, or leave hardware.compile=false"
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


def uses_cuda(accelerator: str) -> bool:
    """Whether a run with this accelerator (auto, cpu or cuda) computes on a GPU here."""
    return accelerator in ("auto", "cuda") and torch.cuda.is_available()


def has_bf16(on_cuda: bool) -> bool:
    """Whether the GPU, or the CPU, has bfloat16 instructions."""
    if on_cuda:
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return processor_has_bf16()
