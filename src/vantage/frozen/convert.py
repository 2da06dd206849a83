"""Turn weights that torch pickled into a safetensors file.

Only this module of Vantage reads such a file, with torch's weights-only loader: a pickle that names anything but
tensors and plain containers is refused, and none of its code runs.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save
from torch import Tensor

from vantage.encoders.weights import PREFIXES
from vantage.errors import UserError
from vantage.storage.files import reason, write_result
from vantage.storage.near import near_path
from vantage.storage.state import below

__all__ = ["Conversion", "convert"]

_KEYS = ("state_dict", "model", "model_state_dict")
"""Where checkpoints keep the tensors of their network."""
_ADVICE = " was not an allowed"
"""What torch's message goes on with after the name that it refused: advice that is not for a reader of this one."""


class Conversion(NamedTuple):
    """What was written."""

    file: Path
    """The file."""

    names: tuple[str, ...]
    """Its tensors."""

    prefix: str
    """The prefix that was removed from their names."""

    left_out: tuple[str, ...]
    """Tensors other than those of the network, such as MoCo's key network and queue."""


def convert(file: Path | str, out: Path | str, key: str = "") -> Conversion:
    """Write the network of a checkpoint that torch pickled to a safetensors file, under plain names.

    `file` holds a state dict, or a dict with one under `key` (if omitted: state_dict, model, or model_state_dict);
    `a.b` is the key b in the dict under a. From a MoCo checkpoint, the query network is written.

    Raises `UserError` if the weights-only loader refuses the file, if there are no tensors, or if `out` exists or does
    not end with .safetensors.
    """
    file, out = Path(file), Path(out)
    if out.suffix != ".safetensors":
        raise UserError(f"{out.name} would hold safetensors: end the name with .safetensors")
    if out.exists():
        raise UserError(f"{out} exists already: remove it, or choose another name")
    tensors = _tensors(_load(file), file, key)
    prefix = next(each for each in PREFIXES if any(name.startswith(each) for name in tensors))
    network = below(tensors, prefix)
    plain = {name: value.detach().clone().contiguous() for name, value in network.items()}  # none share memory
    write_result(out, save(plain, {"format": "pt", "converted from": file.name}), "the weights")
    return Conversion(out, tuple(plain), prefix, tuple(name for name in tensors if not name.startswith(prefix)))


def _load(file: Path) -> Any:
    if not file.is_file():
        raise UserError(f"there is no file {file}{near_path(file)}")
    try:
        with file.open("rb") as opened:
            start = opened.read(4)
    except OSError as problem:
        raise UserError(f"{file} cannot be read: {reason(problem)}") from problem
    if not start.startswith((b"PK", b"\x80")):
        raise UserError(f"{file} is refused: torch.save did not write it. Give weights in a .pth, .pt or .tar file")
    try:
        with warnings.catch_warnings(action="ignore"):  # about what a damaged file seems to hold
            return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as problem:  # a hostile file may fail in any way
        line = next((line.strip() for line in str(problem).splitlines() if "GLOBAL" in line or "global" in line), "")
        which = f" ({line.partition(_ADVICE)[0][:160]})" if line else ""
        raise UserError(
            f"{file} is refused: it is damaged, or holds more than tensors, so that loading it would run code{which}."
            " None of it was run. If you trust it, save its state_dict alone with torch.save, and convert that"
        ) from problem


def _tensors(content: Any, file: Path, key: str) -> dict[str, Tensor]:
    """The state dict in the content of a file."""
    if isinstance(content, Mapping):
        for each in (key,) if key else _KEYS:
            if isinstance(inner := _under(content, each), Mapping):
                content = inner
                break
        else:
            if key:
                raise UserError(f"{file} has no state dict under {key!r}; it has {_list_keys(content)}")
        tensors = {name: value for name, value in content.items() if isinstance(value, Tensor)}
        if tensors and all(isinstance(name, str) for name in tensors):
            return tensors
        where, option = (f"under {key!r}", f"--key {key}.NAME") if key else ("at its top level", "--key")
        raise UserError(f"{file} has no tensors {where}: name their key with {option} ({_list_keys(content)})")
    raise UserError(f"{file} holds no dict of tensors, but {type(content).__name__}")


def _under(content: Mapping[Any, Any], key: str) -> Any:
    """What is under a key, or under the keys between its dots; None if there is nothing."""
    first, _, rest = key.partition(".")
    if key in content or not rest:
        return content.get(key)
    return _under(content[first], rest) if isinstance(content.get(first), Mapping) else None


def _list_keys(content: Mapping[Any, Any]) -> str:
    return ", ".join(map(str, list(content)[:12])) or "nothing"
