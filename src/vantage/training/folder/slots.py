"""The state of an optimizer as named tensors and plain facts, and back."""

from itertools import count
from typing import Any

import torch
from torch import Tensor

from vantage.errors import UserError
from vantage.training.optimizers import LARSOptimizer

__all__ = ["KNOWN", "optimizer_state", "restore_optimizer"]

KNOWN = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, LARSOptimizer)
"""Optimizers whose state can be checked: the same slots for every parameter, each of its shape or a number of steps."""


def optimizer_state(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """An optimizer's state as named tensors and plain facts. Raises `UserError` for state that neither can hold."""
    state = optimizer.state_dict()
    tensors, numbers = dict[str, Tensor](), dict[str, Any]()
    for index, slots in state["state"].items():
        if not isinstance(index, int) or not isinstance(slots, dict):
            raise UserError(f"it keeps {index!r} beside its parameters: keep state in self.state[parameter]")
        for name, value in slots.items():
            path = f"optimizer.{index}.{name}"
            if isinstance(value, Tensor):
                tensors[path] = value
            else:
                numbers[path] = _plain(value, path, tensors)
    return tensors, {"groups": state["param_groups"], "numbers": numbers}


def _plain(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """Plain data for what a slot at `path` holds; its tensors join `tensors` under `path` and a number."""
    if isinstance(value, Tensor):
        name = next(f"{path}.{number}" for number in count() if f"{path}.{number}" not in tensors)
        tensors[name] = value
        return {"tensor": name.removeprefix(path)}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_plain(item, path, tensors) for item in value]}
    if type(value) is dict and all(type(key) in (int, str) for key in value):
        return {"dict": [[key, _plain(item, path, tensors)] for key, item in value.items()]}
    if value is None or type(value) in (bool, int, float):
        return value
    raise UserError(
        f"{path}: a {type(value).__name__} cannot be saved; keep numbers, tensors, and lists, tuples and dicts of them"
    )


def _value(plain: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """The inverse of `_plain`, which takes the tensors from `tensors`."""
    if not isinstance(plain, dict):
        return plain
    ((kind, content),) = plain.items()
    if kind == "tensor":
        return tensors.pop(path + content)
    if kind == "dict":
        return {key: _value(item, path, tensors) for key, item in content}
    return {"list": list, "tuple": tuple}[kind](_value(item, path, tensors) for item in content)


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """The inverse of `optimizer_state`. A state that does not fit this optimizer raises one of the errors
    that `checkpoint.restoring` turns into a `UserError`. A user's own optimizer may keep anything: Adafactor keeps a
    row and a column for a matrix."""
    slots: dict[int, dict[str, Any]] = {}
    slots_of_optimizer = {name: value for name, value in tensors.items() if name.startswith("optimizer.")}
    others = {path: _value(plain, path, slots_of_optimizer) for path, plain in facts["numbers"].items()}
    for path, value in {**slots_of_optimizer, **others}.items():
        _, index, name = path.split(".", 2)
        slots.setdefault(int(index), {})[name] = value
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    groups = []
    for old, new in zip(optimizer.state_dict()["param_groups"], facts["groups"], strict=True):
        if not all(name not in old or name == "params" or _same_kind(value, old[name]) for name, value in new.items()):
            raise ValueError("a setting of the optimizer has another type")
        groups.append({**old, **new, "params": old["params"]})
    if type(optimizer) in KNOWN:
        _check(slots, parameters)
    optimizer.load_state_dict({"state": slots, "param_groups": groups})
    if type(optimizer) not in KNOWN:
        _keep_types(optimizer, slots, parameters)


def _check(slots: dict[int, dict[str, Any]], parameters: list[Tensor]) -> None:
    """Raises `ValueError` for a state that no optimizer of `KNOWN` has."""
    if len({frozenset(each) for each in slots.values()}) > 1:
        raise ValueError("a state of the optimizer lacks what the others have")
    if not all(_fits(index, value, parameters) for index, each in slots.items() for value in each.values()):
        raise ValueError("a state of the optimizer has another shape than its parameter")


def _keep_types(optimizer: torch.optim.Optimizer, slots: dict[int, dict[str, Any]], parameters: list[Tensor]) -> None:
    """Give tensors the types back that they were saved with: torch gives them that of their parameter, which rounds."""
    for index, each in slots.items():
        state = optimizer.state[parameters[index]]
        for name, value in each.items():
            state[name] = _with_types(state[name], value)


def _with_types(loaded: Any, saved: Any) -> Any:
    """What torch loaded, on its device, with the types that were saved."""
    if isinstance(saved, Tensor):
        return loaded if loaded.dtype == saved.dtype else saved.to(loaded.device)
    if type(saved) in (list, tuple):
        return type(saved)(map(_with_types, loaded, saved))
    return {key: _with_types(loaded[key], saved[key]) for key in saved} if type(saved) is dict else saved


def _fits(index: int, value: Any, parameters: list[Tensor]) -> bool:
    """Whether a slot is a number of steps, or has the shape of its parameter."""
    return (
        not isinstance(value, Tensor) or value.shape == parameters[index].shape or value.ndim == 0 and bool(value >= 0)
    )


def _same_kind(value: Any, template: Any) -> bool:
    """Whether a setting of a parameter group, read from JSON, could be one of this optimizer: a number that a float32
    can be multiplied by, or the same switch."""
    if isinstance(template, tuple | list):
        return isinstance(value, tuple | list) and len(value) == len(template) and all(map(_same_kind, value, template))
    if template is None:  # torch's choice of an implementation may change between versions
        return value is None or isinstance(value, bool)
    if isinstance(template, bool) or not isinstance(template, int | float):
        return value == template and isinstance(value, bool) == isinstance(template, bool)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= torch.finfo(torch.float32).max
