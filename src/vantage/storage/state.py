"""The state of a training, saved now and then, so that a stopped training ends like one that was never stopped."""

import contextlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from vantage.storage.cache import try_write

__all__ = ["MINUTES", "StateFile", "State", "restore", "tensors_of"]

MINUTES = 1.0
"""Minutes between two states, unless a training says otherwise."""


class State(NamedTuple):
    """What a training needs to continue."""

    tensors: dict[str, Tensor]
    """Tensors by name, on the CPU."""

    facts: dict[str, Any]
    """Plain data, such as the epochs that are done."""


class StateFile:
    """The state of one training in a file of the cache, whose name depends on everything that the training depends on.

    If the cache is full, a stop costs time, but nothing fails. A damaged file counts as none.
    """

    def __init__(self, file: Path, minutes: float | None = None) -> None:
        """`minutes` is the time between two states; `MINUTES` if omitted."""
        self.file, self.minutes = file, minutes
        self._last = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether enough time has passed since the last state, or since the beginning."""
        minutes = MINUTES if self.minutes is None else self.minutes
        return time.monotonic() - self._last > 60 * minutes

    def write(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Replace the kept state."""
        plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        try_write(self.file, save(plain, {"facts": json.dumps(facts)}))
        self._last = time.monotonic()

    def read(self) -> State | None:
        """The kept state; None if there is none or it is damaged."""
        try:
            with safe_open(self.file, "pt") as file:
                facts = json.loads((file.metadata() or {})["facts"])
                return State({name: file.get_tensor(name) for name in file.keys()}, facts)  # noqa: SIM118
        except (OSError, SafetensorError, KeyError, ValueError, RecursionError):
            return None

    def forget(self) -> None:
        """Remove the state: the training is done."""
        with contextlib.suppress(OSError):  # none was kept, or there is no cache
            self.file.unlink()


def tensors_of(parts: Mapping[str, nn.Module], optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Everything that a training changes: parameters and buffers of modules by name, each once, and the optimizer's
    state by the number of the parameter."""
    tensors = _current_tensors(parts)
    for number, parameter in enumerate(_parameters(optimizer)):
        slots = optimizer.state.get(parameter, {}).items()  # none for a parameter that has had no gradient yet
        tensors |= {f"optimizer.{number}.{name}": value for name, value in slots if isinstance(value, Tensor)}
    return tensors


def restore(parts: Mapping[str, nn.Module], optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> bool:
    """Load what `tensors_of` gave, on the modules' devices; if it does not fit, change nothing and return False."""
    current, parameters = _current_tensors(parts), _parameters(optimizer)
    shapes = {path: value.shape for path, value in tensors.items() if not path.startswith("optimizer.")}
    slots = [(path.split("."), value) for path, value in tensors.items() if path.startswith("optimizer.")]
    sizes = {str(number): parameter.shape for number, parameter in enumerate(parameters)}
    fits = all(len(path) > 2 and path[1] in sizes for path, _ in slots) and all(
        value.ndim == 0 or value.shape == sizes[path[1]] for path, value in slots
    )
    if not fits or shapes != {path: value.shape for path, value in current.items()}:
        return False
    with torch.no_grad():
        for path, value in current.items():
            value.copy_(tensors[path])
    for path, value in tensors.items():
        if path.startswith("optimizer."):
            number, _, name = path.removeprefix("optimizer.").partition(".")
            parameter = parameters[int(number)]
            # In the memory layout of the parameter, as the optimizer itself would have created it.
            slot = value if name == "step" else torch.empty_like(parameter, requires_grad=False).copy_(value)
            optimizer.state[parameter][name] = slot
    return True


def _current_tensors(parts: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """Parameters and buffers, which a copy changes in place."""
    return {
        f"{name}.{path}": value
        for name, part in parts.items()
        for path, value in (*part.named_parameters(), *part.named_buffers())
    }


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
