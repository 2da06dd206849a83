"""Tensors that report a pretended device, and how they are moved to it and from it: see `pretend_gpu.py`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import vantage

__all__ = ["CPU", "DEVICE", "Pretended", "any_to", "each", "place", "pretended", "values"]

DEVICE = torch.device("cuda", 0)
"""The device that pretended tensors report."""

CPU = torch.device("cpu")
"""The device that their values are on."""

_SOURCE = Path(vantage.__file__).parent
_OWN = {__file__, str(Path(__file__).with_name("pretend_gpu.py"))}
_ATEN = torch.ops.aten
_TO = Tensor.to


class Pretended(Tensor):
    """A tensor that reports the pretended device. C++ sees a CPU tensor; this class handles all that Python sees, and
    every operation."""

    inner: Tensor
    """Its values, on the CPU."""

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Pretended":
        assert not isinstance(inner, Pretended)
        tensor = Tensor._make_wrapper_subclass(  # pyright: ignore[reportAttributeAccessIssue]
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=inner.device,
        )
        tensor.inner = inner.detach()
        return tensor

    @property
    def device(self) -> torch.device:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The pretended device."""
        return DEVICE

    @property
    def is_cuda(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Yes."""
        return True

    @property
    def is_cpu(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """No."""
        return False

    def to(self, *args: Any, **kwargs: Any) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """As `Tensor.to`, which in C++ would compare the real devices."""
        return _to(self, *args, **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> Tensor:
        """A copy on the CPU."""
        return _to(self, CPU)

    def tolist(self) -> Any:
        """Python's numbers, after a copy to the host."""
        return self.cpu().tolist()

    def new_tensor(self, data: Any, *, dtype: Any = None, device: Any = None, **kwargs: Any) -> Tensor:
        """Python's numbers on this device."""
        return torch.tensor(data, dtype=dtype or self.dtype, device=device or self.device)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Pretended":
        """A copy on this device, which is a parameter if this is one."""
        memo[id(self)] = twin = Pretended(self.inner.clone())
        twin.requires_grad = self.requires_grad
        twin._is_param = isinstance(self, nn.Parameter)
        return twin

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        """Raises `TypeError`, as for any tensor on a device."""
        raise TypeError(f"the memory of a tensor on {DEVICE} is not the host's, at {place()}")

    data_ptr = __array__ = numpy
    __torch_function__ = torch._C._disabled_torch_function_impl  # pyright: ignore

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{func} on a pretended tensor outside of Pretend()")

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"Pretended({tuple(self.shape)}, {self.dtype})"


def values(tree: Any) -> Any:
    """The values of pretended tensors, without a wait: for tests only."""
    return each(tree, lambda tensor: tensor.inner if isinstance(tensor, Pretended) else tensor)


def pretended(module: nn.Module) -> nn.Module:
    """Move a module's parameters and buffers to the pretended device, in place, as `.to(device)` does."""
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                part._parameters[name] = nn.Parameter(Pretended(parameter.detach()), parameter.requires_grad)
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = Pretended(buffer)
    return module


def each(tree: Any, change: Callable[[Tensor], Any]) -> Any:
    """The same tuples, lists and dictionaries with every tensor changed."""
    if isinstance(tree, Tensor):
        return change(tree)
    if isinstance(tree, list | tuple):
        return type(tree)([each(part, change) for part in tree])
    return {name: each(part, change) for name, part in tree.items()} if isinstance(tree, dict) else tree


def place() -> str:
    """The innermost line of the package on the stack, or the innermost outside of torch and of the pretended device."""
    frame, first = sys._getframe(1), ""
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(str(_SOURCE)):
            return f"{Path(path).relative_to(_SOURCE).as_posix()}:{frame.f_lineno}"
        if not first and path not in _OWN and "torch" not in Path(path).parts:
            first = f"{Path(path).name}:{frame.f_lineno}"
        frame = frame.f_back
    return first


def _to(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`Tensor.to` with the pretended device; the C++ version compares the real devices."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    rest = list(args)
    other = kwargs.pop("other", None)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    if isinstance(other, Tensor):
        device, dtype = other.device, other.dtype
    elif rest and isinstance(rest[0], torch.dtype):
        dtype = rest.pop(0)
    elif rest:
        device, dtype = rest.pop(0), rest.pop(0) if rest and isinstance(rest[0], torch.dtype) else dtype
    names = dict(zip(("non_blocking", "copy"), rest, strict=False)) | kwargs
    device = tensor.device if device is None else torch.device(device)
    dtype = tensor.dtype if dtype is None else dtype
    layout = names.get("memory_format", torch.preserve_format)
    unchanged = device.type == tensor.device.type and dtype == tensor.dtype and not names.get("copy", False)
    if unchanged and (layout is torch.preserve_format or tensor.is_contiguous(memory_format=layout)):
        return tensor
    blocks = not names.get("non_blocking", False)
    return _ATEN._to_copy.default(tensor, dtype=dtype, device=device, non_blocking=not blocks, memory_format=layout)


def any_to(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`Tensor.to` for all tensors, since `cpu.to(pretended)` reads the other's device too."""
    other = args[0] if args else kwargs.get("other")
    return _to(tensor, *args, **kwargs) if isinstance(other, Pretended) else _TO(tensor, *args, **kwargs)
