"""Weights from elsewhere: reading a safetensors file, and finding the tensors that belong to a backbone.

A file holds a network under the names of torchvision or timm, perhaps with the prefix of a checkpoint: MoCo's query
network (`module.encoder_q.`), or a wrapper (`module.`, `backbone.`). Classifiers and heads are left out. Everything
else must fit, so that half of a ResNet-34 is never loaded as a ResNet-18.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.nn import init
from torch.nn.functional import normalize
from torch.overrides import TorchFunctionMode

from vantage.errors import UserError
from vantage.storage.near import near_path
from vantage.storage.state import below

__all__ = [
    "PICKLES",
    "PREFIXES",
    "BackboneTensors",
    "build_without_numbers",
    "describe_difference",
    "fit_weights",
    "backbone_tensors",
    "read_weights",
    "shapes_only",
]

M = TypeVar("M", bound=nn.Module)

PREFIXES = (
    "module.encoder_q.",
    "encoder_q.",
    "module.encoder.",
    "encoder.",
    "module.backbone.",
    "backbone.",
    "module.model.",
    "model.",
    "module.",
    "",
)
"""Prefixes of a network's names in checkpoints, MoCo's query network first."""

PICKLES = (".pth", ".pt", ".tar", ".ckpt", ".bin", ".pkl")
"""Suffixes of files that torch pickles."""

_TOPS = frozenset({"fc", "head", "classifier", "last_linear"})
"""Names of classifiers and heads."""

_COUNTER = "num_batches_tracked"
"""BatchNorm's counter of batches, which is missing from files of early versions of torch."""


class BackboneTensors(NamedTuple):
    """The tensors of a file that belong to a backbone."""

    state: dict[str, Tensor]
    """Every parameter and buffer, by the backbone's own names."""

    left_out: tuple[str, ...]
    """Names in the file that belong to a head, a classifier or another network."""


def read_weights(file: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, on the CPU. No code in the file is executed.

    Raises `UserError` for any other file; one that torch pickled has to be converted first.
    """
    if not file.is_file():
        raise UserError(f"there is no file {file}{near_path(file)}")
    try:
        with safe_open(file, framework="pt") as tensors:
            return {name: tensors.get_tensor(name) for name in tensors.keys()}
    except (OSError, SafetensorError) as problem:
        if file.suffix.lower() in PICKLES:
            better = file.with_suffix(".safetensors")
            raise UserError(
                f"{file} is not a safetensors file: convert it first, with `vantage convert {file} {better}`"
            ) from problem
        raise UserError(f"{file} is not a safetensors file, or is damaged ({problem})") from problem


def backbone_tensors(backbone: nn.Module, tensors: Mapping[str, Tensor], file: Path) -> BackboneTensors:
    """The tensors that belong to the backbone, under the one of `PREFIXES` that matches most of its names.

    Raises `UserError` that names tensors that are missing, surplus or of another shape.
    """
    expected = backbone.state_dict()
    prefix = max(PREFIXES, key=lambda each: sum(f"{each}{name}" in tensors for name in expected))
    candidates = below(tensors, prefix)
    tops = {name for name in candidates if name not in expected and _is_on_top(name, backbone)}
    counters = {name: expected[name] for name in expected if name.endswith(_COUNTER) and name not in candidates}
    state = {name: value for name, value in candidates.items() if name not in tops} | counters
    if prefix == "":
        beside = [name for name in state if name not in expected and name.partition(".")[0] == "module"]
        state = {name: value for name, value in state.items() if name not in beside}
    if difference := describe_difference(expected, state):
        raise UserError(f"the weights in {file} are not those of this backbone: {difference}")
    own = {f"{prefix}{name}" for name in state}
    return BackboneTensors(state, tuple(name for name in tensors if name not in own))


def fit_weights(backbone: nn.Module, file: Path) -> tuple[str, ...]:
    """Load the weights in a file into a backbone; returns the names that were left out. Raises `UserError` as
    `read_weights` and `backbone_tensors` do."""
    state, others = backbone_tensors(backbone, read_weights(file), file)
    backbone.load_state_dict(state)
    return others


def describe_difference(expected: Mapping[str, Tensor], actual: Mapping[str, Tensor]) -> str:
    """How two states differ in names and shapes, with an example of each kind; empty if they do not differ."""
    missing, surplus = (
        [name for name in expected if name not in actual],
        [name for name in actual if name not in expected],
    )
    other = [name for name in expected if name in actual and expected[name].shape != actual[name].shape]
    kinds = (
        (missing, " is missing from it", "s are missing from it"),
        (surplus, " in it is not needed", "s in it are not needed"),
    )
    parts = [
        f"{len(names)} tensor{one if len(names) == 1 else several}, such as {names[0]}"
        for names, one, several in kinds
        if names
    ]
    if other:
        shapes = " and not ".join(str(tuple(state[other[0]].shape)) for state in (actual, expected))
        parts.append(
            f"{len(other)} {'is' if len(other) == 1 else 'are'} of another shape, such as {other[0]}: {shapes}"
        )
    return "; ".join(parts)


_DRAWS = (Tensor.normal_, Tensor.uniform_, init.normal_, init.uniform_, init.kaiming_normal_, init.kaiming_uniform_)
_ONLY_NUMBERS = frozenset({*_DRAWS, normalize})
"""Functions that change numbers and no shape."""


class _NoNumbers(TorchFunctionMode):
    """Neither draws nor normalizes numbers of the meta device, where torch works out each shape in Python."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensor = args[0] if args else kwargs.get("tensor")
        skip = func in _ONLY_NUMBERS and isinstance(tensor, Tensor) and tensor.is_meta
        return tensor if skip else func(*args, **kwargs)


@contextmanager
def shapes_only() -> Iterator[None]:
    """Build modules on torch's meta device: with names and shapes, and without numbers."""
    with torch.device("meta"), _NoNumbers():
        yield


def build_without_numbers(build: Callable[[], M]) -> M:
    """The module on torch's meta device, with names and shapes and without memory for numbers; with numbers if a user's
    part reads one while it is built. Torch's default generator is not changed."""
    try:
        with shapes_only():
            return build()
    except Exception as problem:  # a user's part may raise anything
        if "meta" not in str(problem).lower():  # such as a size that no tensor can have
            raise
    with torch.random.fork_rng(devices=[]):
        return build()


def _is_on_top(name: str, backbone: nn.Module) -> bool:
    """Whether a tensor belongs to a classifier or head that the backbone does not have."""
    modules = dict(backbone.named_modules())
    names = name.split(".")
    for depth, part in enumerate(names):
        above = ".".join(names[: depth + 1])
        if part in _TOPS and (isinstance(modules.get(above), nn.Identity) or (depth == 0 and above not in modules)):
            return True
    return False
