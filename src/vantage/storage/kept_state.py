"""What a training within an evaluation keeps in the cache, so that a stopped one ends as one that was never stopped."""

import contextlib
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from vantage.storage.cache import hash_of
from vantage.storage.files import written_whole

__all__ = ["KeptState", "restore", "tensors_of"]

SECONDS = 60.0
"""Between two states."""


class KeptState:
    """Tensors in a file that is named by all that the training depends on."""

    def __init__(self, folder: Path, facts: Iterable[bytes]) -> None:
        self.file = folder / f"{hash_of(facts)}.safetensors"
        self._last = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether the last state, or the beginning, was a while ago."""
        return time.monotonic() - self._last > SECONDS

    def write(self, tensors: Mapping[str, Tensor]) -> None:
        """Keep these; a cache without room costs time after a stop, but is no failure."""
        whole = save({name: value.detach().cpu().contiguous() for name, value in tensors.items()})
        try:
            with written_whole(self.file) as target:
                target.write(whole)
        except OSError:
            pass
        self._last = time.monotonic()

    def read(self) -> dict[str, Tensor]:
        """What was kept; nothing where nothing was, or not whole."""
        try:
            return load_file(self.file)
        except (OSError, SafetensorError):
            return {}

    def forget(self) -> None:
        """The training is done."""
        with contextlib.suppress(OSError):  # nothing there, or no cache
            self.file.unlink()


def tensors_of(parts: Mapping[str, nn.Module], optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """All that a training changes in modules, by their names, and in the optimizer of their parameters."""
    tensors = {f"{name}.{key}": value for name, part in parts.items() for key, value in part.state_dict().items()}
    for number, weight in enumerate(_weights(optimizer)):
        state = optimizer.state[weight].items()  # nothing for a parameter that got no gradient yet
        tensors |= {f"optimizer.{number}.{key}": value for key, value in state if isinstance(value, Tensor)}
    return tensors


def restore(parts: Mapping[str, nn.Module], optimizer: torch.optim.Optimizer, found: Mapping[str, Tensor]) -> None:
    """Take up what `tensors_of` gave, on the devices where the modules are."""
    for name, part in parts.items():
        own = {key.removeprefix(f"{name}."): value for key, value in found.items() if key.startswith(f"{name}.")}
        part.load_state_dict(own)
    weights = _weights(optimizer)
    for name, value in found.items():
        if name.startswith("optimizer."):
            _, number, key = name.split(".", 2)
            weight = weights[int(number)]
            # In the layout of the parameter, as the optimizer itself would have made it.
            optimizer.state[weight][key] = value if key == "step" else torch.empty_like(weight).copy_(value)


def _weights(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [weight for group in optimizer.param_groups for weight in group["params"]]
