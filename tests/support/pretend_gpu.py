"""A simulated GPU: tensors report the device `cuda:0`, compute on the CPU, and record when a host would wait for a GPU.

Torch's own `FakeTensorMode` cannot run a backward pass on CUDA tensors without a GPU. It has no values either, so it
stops at the first operation that needs one. Here every tensor holds its values, so the code paths for a GPU run to the
end, with the numbers that they compute.

Two kinds of tensor exist: those on the pretended device (`Pretended`) and ordinary ones on the CPU. Under the mode
`Pretend`, which every operation of torch passes through,

* an operation on tensors of both kinds raises, as in torch itself, except for copies, indices on the CPU, and single
  numbers in pointwise operations;
* an operation makes the host wait (`Wait`) if one of its inputs is on the device and
  - torch tags it `data_dependent_output`: its result is a number on the host (`item`, `bool`, `equal`, …); or
  - torch tags it `dynamic_output_shape`: the host must learn the size of its result (`nonzero`, `unique`,
    `repeat_interleave`, `bincount`, …). Indexing has this tag for masks only, so it counts with masks only; or
  - its kernel reads on the host although torch has no tag for that: `segment_reduce` checks its lengths, and writing
    through a mask turns the mask into indices, unless a single Python number is written, which is a `masked_fill`;
* a copy from the device waits, and so does one to the device that is not `non_blocking`: numbers from Python
  (`torch.tensor(…, device=…)`), index tensors on the CPU, `.to(device)`.

Operations on CPU tensors alone, such as drawing the parameters of views before they are sent, never count: there is no
device to wait for.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import torch
from pretended_tensors import CPU, DEVICE, Pretended, any_to, each, place, pretended, values
from torch import Tensor
from torch.__future__ import get_overwrite_module_params_on_conversion, set_overwrite_module_params_on_conversion
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["DEVICE", "Pretend", "Pretended", "Wait", "pretended", "values"]

_ATEN = torch.ops.aten
_INDEXING = {_ATEN.index.Tensor, _ATEN.index_put.default, _ATEN.index_put_.default, _ATEN._unsafe_index.Tensor}
_COPIES = {_ATEN._to_copy.default, _ATEN.copy_.default, _ATEN.copy.default}
_REAL: dict[str, Callable[..., Any]] = {
    "_lazy_init": lambda: None,
    "get_rng_state": lambda *device: torch.empty(0, dtype=torch.uint8),
    "set_rng_state": lambda *state: None,
}
"""What needs a real device, and stands for it: here the CPU's generator draws everything."""


class Wait(NamedTuple):
    """A wait of the host for the device."""

    place: str
    """The innermost line of the package that caused it, as `file.py:line`; if there is none, the caller's line."""

    what: str
    """The operation, and for copies the direction."""


class Pretend(TorchDispatchMode):
    """The mode that handles every operation inside it, also in backward passes, as the module's docstring describes."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[Wait] = []

    def __enter__(self) -> "Pretend":
        self._before = {name: getattr(torch.cuda, name) for name in _REAL}
        torch.cuda.__dict__.update(_REAL)
        self._settings = torch._C._only_lift_cpu_tensors(), get_overwrite_module_params_on_conversion()
        torch._C._set_only_lift_cpu_tensors(True)
        set_overwrite_module_params_on_conversion(True)  # `Module.to` would write into the parameter, which is a CPU's
        Tensor.to = any_to  # pyright: ignore
        return super().__enter__()

    def __exit__(self, *problem: Any) -> None:
        super().__exit__(*problem)
        torch.cuda.__dict__.update(self._before)
        lifts, overwrites = self._settings
        torch._C._set_only_lift_cpu_tensors(lifts)
        set_overwrite_module_params_on_conversion(overwrites)
        del Tensor.to  # makes the method of the C++ base class visible again

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # it would cost more than the operations

    @contextmanager
    def new_waits(self) -> Iterator[list[Wait]]:
        """The waits that occur inside the `with` block."""
        start, waits = len(self.waits), list[Wait]()
        yield waits
        waits += self.waits[start:]

    def wait(self, what: str) -> None:
        """Record a wait at the current line of the package."""
        self.waits.append(Wait(place(), what))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = list(_tensors((*args, *kwargs.values())))
        on_device = [tensor for tensor in tensors if isinstance(tensor, Pretended)]
        target = kwargs.get("device")
        if not on_device and (target is None or torch.device(target).type == "cpu"):
            return func(*args, **kwargs)
        if func in _COPIES:
            return self._copy(func, args, kwargs, target)
        if on_device:
            if len(on_device) < len(tensors):
                self._check(func, args, tensors, len(on_device))
            self._look(func, args, kwargs)
        if target is not None:
            kwargs["device"] = CPU  # C++ may have filled in the device that it sees
        result = func(*values(args), **values(kwargs))
        written_arguments = _written(func)
        if not written_arguments:
            return each(result, Pretended)
        outputs = [kwargs[name] if name in kwargs else args[number] for number, name in written_arguments]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _copy(self, func: Any, args: Any, kwargs: dict[str, Any], target: torch.device | None) -> Any:
        blocks = not kwargs.get(
            "non_blocking", args[2] if len(args) > 2 and func is not _ATEN._to_copy.default else False
        )
        if func is _ATEN._to_copy.default:
            from_device, to_device = isinstance(args[0], Pretended), target is None or target.type == "cuda"
            to_device = to_device if target is not None else from_device
            self._note_copy(from_device, to_device, blocks)
            if target is not None:
                kwargs["device"] = CPU
            result = func(*values(args), **kwargs)
            return Pretended(result) if to_device else result
        to_device, from_device = isinstance(args[0], Pretended), isinstance(args[1], Pretended)
        self._note_copy(from_device, to_device, blocks)
        result = func(*values(args), **values(kwargs))
        return args[0] if func is _ATEN.copy_.default else Pretended(result)

    def _note_copy(self, from_device: bool, to_device: bool, blocks: bool) -> None:
        if from_device and not to_device:
            self.wait("copy from the device")
        elif to_device and not from_device and blocks:
            self.wait("blocking copy to the device")

    def _check(self, func: Any, args: Any, tensors: list[Tensor], count_on_device: int) -> None:
        """Raises `RuntimeError` if devices are mixed."""
        others = [tensor for tensor in tensors if not isinstance(tensor, Pretended)]
        if func in _INDEXING and isinstance(args[0], Pretended):
            indices = [tensor for tensor in _tensors(args[1]) if not isinstance(tensor, Pretended)]
            for _ in indices:
                self.wait(f"blocking copy to the device ({func.overloadpacket.__name__})")
            others = [tensor for tensor in others if not any(tensor is index for index in indices)]
            others = [tensor for tensor in others if tensor.dim()]
        if torch.Tag.pointwise in func.tags or func is _ATEN.fill_.Tensor:
            others = [tensor for tensor in others if tensor.dim()]
        if others:
            raise RuntimeError(f"{func}: {count_on_device} tensors on {DEVICE}, {len(others)} on the CPU, at {place()}")

    def _look(self, func: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """Record an operation that waits."""
        name, masks = _waits(func)
        if not name or (masks and not any(part.dtype in (torch.bool, torch.uint8) for part in _tensors(args[1]))):
            return
        size_is_given = kwargs.get("output_size") is not None or kwargs.get("unsafe", False)
        from_cpu = name.startswith("index_put") and not isinstance(args[2], Pretended) and not any(args[3:])
        if not size_is_given and not from_cpu:
            self.wait(name)


@cache
def _waits(func: Any) -> tuple[str, bool]:
    """The name of an operation that waits, else ""; and whether it waits only if its indices include masks."""
    name = func.overloadpacket.__name__
    if func in _INDEXING:
        return f"{name} with a mask", True
    data_dependent = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape} & set(func.tags)
    return (name if data_dependent or name == "segment_reduce" else ""), False


def _tensors(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, list | tuple):
        for part in tree:
            yield from _tensors(part)
    elif isinstance(tree, dict):
        yield from _tensors(list(tree.values()))


@cache
def _written(func: Any) -> list[tuple[int, str]]:
    """Position and name of the arguments that an operation writes to; it returns these same objects."""
    schema = func._schema
    names = {
        name: argument
        for argument in schema.arguments
        if argument.alias_info and argument.alias_info.is_write
        for name in argument.alias_info.before_set
    }
    returns = [r.alias_info for r in schema.returns if r.alias_info and r.alias_info.is_write]
    arguments = [names[next(iter(alias.before_set))] for alias in returns]
    return [(schema.arguments.index(argument), argument.name) for argument in arguments]
