"""Refuse networks and memories that are larger than the machine's memory, before any of them is made."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from torch import Tensor, nn

from vantage.encoders.weights import shapes_only
from vantage.errors import UserError, first_line
from vantage.machine.allocator import check_memory
from vantage.machine.devices import uses_cuda
from vantage.memory import StoreOf
from vantage.training.run import Run

__all__ = ["check_footprint", "module_bytes", "tensor_bytes"]


def check_footprint(run: Run, images: int) -> None:
    """Raises `UserError` if the weights of a run's networks or the rows of one of its memories would take more than
    all memory. Both are built on torch's meta device, which has shapes but no numbers."""
    device = "cuda" if uses_cuda(run.hardware.accelerator) else "cpu"
    networks = _without_numbers("the networks", run.encoders.build)
    if networks is None:
        return
    check_memory(module_bytes(networks), device, "storing the networks", "give a narrower backbone or head")
    for number, branch in enumerate(run.branches):
        memory, what = branch.memory, f"the memory of branch {number}"
        if isinstance(memory, StoreOf):
            continue
        store = _without_numbers(what, partial(memory.build, images, networks.width))
        if store is not None:
            check_memory(module_bytes(store), device, what, "give a shorter one")


def _without_numbers(what: str, build: Callable[[], Any]) -> Any:
    """A module on the meta device, or None if it cannot be built there. Raises `UserError` if its size cannot even be
    counted."""
    try:
        with shapes_only():
            return build()
    except RuntimeError as problem:
        if "overflow" in str(problem):
            raise UserError(f"{what} would be larger than any computer's memory ({first_line(problem)})") from problem
    except Exception:  # parts that do not fit are named where they are tried, and a user's part may need real numbers
        pass
    return None


def tensor_bytes(tensors: Iterable[Tensor]) -> int:
    """Bytes of the numbers in some tensors."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def module_bytes(module: nn.Module) -> int:
    """Bytes of the parameters and buffers of a module."""
    return tensor_bytes((*module.parameters(), *module.buffers()))
