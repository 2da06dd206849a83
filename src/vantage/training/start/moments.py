"""What an optimizer keeps of each parameter, moved from one run to another by the parameters' names."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from vantage.training.slots import restore_optimizer

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
    """Fill `optimizer`, of the parameters of `module`, with what `other` keeps of those of `other_module`; returns
    whether that fits.

    `tensors` and `facts` are as `optimizer_state` made them. `names` says which parameters were taken: the
    beginning of their names here, and the beginning of their names there.
    """
    other_numbers = _numbers(other, other_module)
    if facts is None or sum(len(group["params"]) for group in facts["groups"]) != len(other_numbers):
        return False  # the other run had parameters beside those of its networks
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
    """The number by which an optimizer's state knows each parameter of a module."""
    order = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
    number = {each: position for position, each in enumerate(order)}
    return {name: number[id(each)] for name, each in module.named_parameters() if id(each) in number}
