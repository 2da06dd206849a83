"""The state of a training, saved now and then, so that a stopped training ends like one that was never stopped."""

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from vantage.storage.cache import try_write
from vantage.storage.cache_size import in_use, make_room

__all__ = ["MINUTES", "State", "StateFile", "below", "restore", "tensors_of"]

MINUTES = 1.0
"""Minutes between two states, unless a training says otherwise."""


_FITS: dict[str, Callable[[Any], bool]] = {
    "epochs": lambda value: type(value) is int and value >= 0,
    "losses": lambda value: isinstance(value, list) and all(isinstance(loss, float) for loss in value),
}
"""Whether a fact that a training needs is what it wrote."""


def below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with `prefix`, by the rest of their names."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


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
        content = save(plain, {"facts": json.dumps(facts)})
        make_room(self.file, len(content))
        try_write(self.file, content)
        self._last = time.monotonic()

    def read(self, *needed: str) -> State | None:
        """The kept state; None if there is none, it is damaged, or it lacks a needed fact: `epochs`, a whole number, or
        `losses`, a list of numbers."""
        try:
            with in_use(self.file), safe_open(self.file, "pt") as file:
                facts = json.loads((file.metadata() or {})["facts"])
                if all(_FITS[name](facts[name]) for name in needed):
                    return State({name: file.get_tensor(name) for name in file.keys()}, facts)  # noqa: SIM118
        except (OSError, SafetensorError, KeyError, TypeError, ValueError, RecursionError):
            pass
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
    slots = {path: value for path, value in tensors.items() if path.startswith("optimizer.")}
    if shapes != {path: value.shape for path, value in current.items()} or not _fit(slots, parameters):
        return False
    with torch.no_grad():
        for path, value in current.items():
            value.copy_(tensors[path])
    for path, value in slots.items():
        _, number, name = path.split(".")
        parameter = parameters[int(number)]
        # In the memory layout of the parameter, as the optimizer itself would have created it.
        slot = value if name == "step" else torch.empty_like(parameter, requires_grad=False).copy_(value)
        optimizer.state[parameter][name] = slot
    return True


def _fit(slots: Mapping[str, Tensor], parameters: list[Tensor]) -> bool:
    """Whether an optimizer's state has the shapes of its parameters, and the same names for each that has a state."""
    sizes, names = {str(number): parameter.shape for number, parameter in enumerate(parameters)}, dict[str, set[str]]()
    for path, value in slots.items():
        _, number, *name = path.split(".")
        if len(name) != 1 or value.shape != (torch.Size() if name == ["step"] else sizes.get(number)):
            return False
        if name == ["step"] and not value >= 0:  # Adam raises numbers below 1 to this power
            return False
        names.setdefault(number, set()).update(name)
    return len(set(map(frozenset, names.values()))) < 2


def _current_tensors(parts: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """Parameters and buffers, which a copy changes in place."""
    return {
        f"{name}.{path}": value
        for name, part in parts.items()
        for path, value in (*part.named_parameters(), *part.named_buffers())
    }


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
