"""Try an optimizer of a user's own before the first step: can what it keeps be saved, and does it go on alike?"""

import json

import torch
from torch import Tensor, nn

from vantage.errors import UserError, with_place
from vantage.training.folder.slots import KNOWN, optimizer_state, restore_optimizer
from vantage.training.optimizers import Optimizer

__all__ = ["build_optimizer"]

_STEPS, _LEARNING_RATE, _SEED = 2, 1e-3, 0  # of the trial


def build_optimizer(choice: Optimizer, module: nn.Module) -> torch.optim.Optimizer:
    """The optimizer of a module, which is on the device that it is trained on.

    An optimizer of a user's own first takes two steps by random gradients, is saved and restored as by a checkpoint,
    and takes a third; the module is left as it was. Raises `UserError` if it cannot be saved, or if it does not go on
    bit for bit, since it then keeps something outside the state that torch knows of.
    """
    try:
        optimizer = choice.build(module)
        if type(optimizer) in KNOWN:
            return optimizer
        parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        begin = _copies(parameters)
        try:
            _try(choice, module, optimizer, parameters)
        finally:
            _fill(parameters, begin)
            module.zero_grad(set_to_none=True)
        return choice.build(module)
    except UserError as problem:
        raise UserError(f"the optimizer {type(choice).__name__} cannot be used: {problem}") from problem
    except Exception as problem:  # a user's part may raise anything
        raise UserError(f"the optimizer {type(choice).__name__} cannot be used: {with_place(problem)}") from problem


def _try(choice: Optimizer, module: nn.Module, first: torch.optim.Optimizer, parameters: list[nn.Parameter]) -> None:
    devices = sorted({parameter.device.index for parameter in parameters if parameter.device.type == "cuda"})
    with torch.random.fork_rng(devices=devices):
        for step in range(_STEPS):
            _step(first, parameters, step)
        tensors, facts = optimizer_state(first)
        tensors, facts = {name: tensor.clone() for name, tensor in tensors.items()}, json.dumps(facts)
        middle = _copies(parameters)
        _step(first, parameters, _STEPS)
        end = _copies(parameters)
        _fill(parameters, middle)
        second = choice.build(module)
        restore_optimizer(second, tensors, json.loads(facts))
        _step(second, parameters, _STEPS)
    if not all(map(torch.equal, parameters, end)):
        raise UserError(
            "saved and restored, it does not take the step that it would have taken: keep all state in"
            " self.state[parameter] or in self.param_groups"
        )


def _step(optimizer: torch.optim.Optimizer, parameters: list[nn.Parameter], step: int) -> None:
    torch.manual_seed(_SEED + step)
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    for group in optimizer.param_groups:
        group["lr"] = _LEARNING_RATE
    optimizer.step()


def _copies(parameters: list[nn.Parameter]) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in parameters]


@torch.no_grad()
def _fill(parameters: list[nn.Parameter], values: list[Tensor]) -> None:
    for parameter, value in zip(parameters, values, strict=True):
        parameter.copy_(value)
