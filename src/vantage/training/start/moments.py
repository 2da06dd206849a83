"""Copy the state of one run's optimizer to another's, matching parameters by their names."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from vantage.training.folder.slots import restore_optimizer

__all__ = ["copy_moments"]

_SLOTS = "optimizer."


def copy_moments(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    other: torch.optim.Optimizer,
    other_module: nn.Module,
    tensors: Mapping[str, Tensor],
    facts: Mapping[str, Any] | None,
    names: Mapping[str, str],
) -> bool:
    """Fill `optimizer`, which updates `module`, with the state that `other` has of `other_module`; returns whether it
    fits.

    `tensors` and `facts` are that state, as `optimizer_state` made it, but without "optimizer." before the names of the
    tensors. `names` says which parameters were taken: it maps the beginning of their names here to the beginning of
    their names there. Raises what `restore_optimizer` does.
    """
    other_numbers = _numbers(other, other_module)
    if facts is None or sum(len(group["params"]) for group in facts["groups"]) != len(other_numbers):
        return False  # the other run had parameters besides those of its networks
    slots = {**tensors, **{name.removeprefix(_SLOTS): value for name, value in facts["numbers"].items()}}
    copies: dict[str, Any] = {}
    for name, number in _numbers(optimizer, module).items():
        for here, there in names.items():
            if name.startswith(here):
                prefix = f"{other_numbers[there + name.removeprefix(here)]}."
                for slot, value in slots.items():
                    if slot.startswith(prefix):
                        copies[f"{_SLOTS}{number}.{slot.removeprefix(prefix)}"] = value
    state = {slot: value for slot, value in copies.items() if isinstance(value, Tensor)}
    numbers = {slot: value for slot, value in copies.items() if slot not in state}
    groups = optimizer.state_dict()["param_groups"]
    restore_optimizer(optimizer, state, {"groups": groups, "numbers": numbers})
    return True


def _numbers(optimizer: torch.optim.Optimizer, module: nn.Module) -> dict[str, int]:
    """The index of each parameter of a module in an optimizer's state, by the parameter's name."""
    order = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
    number = {each: position for position, each in enumerate(order)}
    return {name: number[id(each)] for name, each in module.named_parameters() if id(each) in number}
