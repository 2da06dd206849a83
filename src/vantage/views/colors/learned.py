"""A color space that was learned: a frozen flow, read from a file that is known by its digest.

The file is safetensors: the flow's parameters, and as metadata (JSON) the flow's choice, the color space whose
channels go in, and mean and deviation of the channels that come out. Nothing in it is executed.

b: images   h, w: height and width in pixels
"""

import functools
import hashlib
import json
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from vantage.composition.codec import decode, encode
from vantage.errors import UserError
from vantage.storage.files import write_result
from vantage.views.colors.flows import Flow, FlowNetwork
from vantage.views.colors.spaces import ColorSpace
from vantage.views.colors.statistics import Statistics

__all__ = ["BEST", "LAST", "LearnedSpace", "learned_space", "write_learned"]

BEST = "best.safetensors"
"""Name of the file with the best state, in the folder that `vantage views learn` wrote."""
LAST = "last.safetensors"
"""Name of the file with the last one."""

_META, _SCHEMA = "vantage.learned_views", 1


@dataclass(frozen=True)
class LearnedSpace:
    """The channels that a trained flow makes of an image (InfoMin, Tian et al., arXiv 2005.10243, section 4.2).

    Two are equal if their digests are: the file may move. A run that uses one keeps a copy beside its settings. Raises
    `UserError` when it is first used, where the file is missing or is not the one that the digest names.
    """

    digest: str
    """SHA-256 of the file, in hexadecimal digits."""

    file: str = field(compare=False)
    """The file, as `vantage views learn` wrote it."""

    statistics: Statistics
    """Mean and standard deviation of the learned channels, over images that the flow was trained on."""

    def convert(self, images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Red, green and blue from 0 to 1 as the learned channels, without a gradient."""
        found = _opened(self.file, self.digest, str(images.device), images.dtype)
        with torch.no_grad():
            normalized = found.space.statistics.normalize()
            channels = normalized.apply(found.space.convert(images), torch.empty(len(images), 0))
            return found.network(channels)[0]

    def copy_to(self, folder: Path) -> None:
        """Put a copy of the file into a folder, which `beside` finds. Raises `UserError` where the file is missing, is
        not what the digest says, or cannot be copied."""
        _opened(self.file, self.digest, "cpu", torch.float32)
        place = self._place(folder)
        if place.is_file() and (Path(self.file).samefile(place) or _digest(place) == self.digest):
            return
        try:
            shutil.copyfile(self.file, place)
        except OSError as problem:
            raise UserError(f"the learned views could not be copied to {place}: {problem}") from problem

    def beside(self, folder: Path) -> "LearnedSpace":
        """The same channels, read from the copy in this folder where there is one."""
        place = self._place(folder)
        return replace(self, file=str(place.absolute())) if place.is_file() else self

    def _place(self, folder: Path) -> Path:
        return folder / f"views-{self.digest[:16]}.safetensors"


def learned_space(place: Path | str) -> LearnedSpace:
    """The color space that `vantage views learn` wrote: a file, or a folder, whose last state is then meant.

    Raises `UserError` where there is none.
    """
    place = Path(place)
    if place.is_dir():
        found = place / LAST
        if not found.is_file():
            raise UserError(
                f"{place} holds no learned views: there is no {LAST} in it. Name the folder that was given to"
                " `vantage views learn` as --out"
            )
        place = found
    if not place.is_file():
        raise UserError(f"{place} does not exist: name a folder that `vantage views learn` wrote, or a file in it")
    file, digest = str(place.absolute()), _digest(place)
    return LearnedSpace(digest, file, _opened(file, digest, "cpu", torch.float32).statistics)


def write_learned(
    file: Path, flow: Flow, network: FlowNetwork, space: ColorSpace, statistics: Statistics
) -> LearnedSpace:
    """Keep a trained flow as a file, whole or not at all, and give the color space that reads it.

    `space` is the one whose channels, normalized by its statistics, go into the flow; `statistics` are those of the
    channels that come out. Raises `UserError` where the file cannot be written.
    """

    told = {
        "schema": _SCHEMA,
        "flow": encode(flow),
        "space": encode(space),
        "statistics": encode(statistics),
    }
    state = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    content = save(state, {_META: json.dumps(told, allow_nan=False)})
    write_result(file, content, "the learned views")
    return LearnedSpace(hashlib.sha256(content).hexdigest(), str(file.absolute()), statistics)


class _Opened(NamedTuple):
    """What a file of learned views holds."""

    space: ColorSpace
    network: FlowNetwork
    statistics: Statistics


@functools.lru_cache(maxsize=16)
def _opened(file: str, digest: str, device: str, dtype: torch.dtype) -> _Opened:
    """The frozen flow on a device; read once in a process."""
    path = Path(file)
    if not path.is_file():
        raise UserError(
            f"the learned views {file} are not there: put the file back, or learn views anew (vantage views learn)"
        )
    found = _digest(path)
    if found != digest:
        raise UserError(
            f"{file} is not the file of learned views that was asked for: its SHA-256 begins with {found[:12]}, not"
            f" {digest[:12]}. Put the right file back, or start a new run with this one"
        )
    told, state = _read(path)

    flow: Flow = decode(told["flow"], Flow, path="flow")
    space: ColorSpace = decode(told["space"], ColorSpace, path="space")
    network = flow.build()
    try:
        network.load_state_dict(state)
    except RuntimeError as problem:
        raise UserError(f"{file} does not hold the flow that it names: {str(problem)[:200]}") from problem
    network = network.to(device=device, dtype=dtype).eval().requires_grad_(False)
    return _Opened(space, network, decode(told["statistics"], Statistics, path="statistics"))


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            told = json.loads((file.metadata() or {})[_META])
            state = {name: file.get_tensor(name) for name in file.keys()}
    except (OSError, SafetensorError, KeyError, ValueError) as problem:
        raise UserError(
            f"{path} holds no learned views ({problem}): name what `vantage views learn` wrote"
        ) from problem
    if not isinstance(told, dict) or told.get("schema") != _SCHEMA:
        raise UserError(f"{path} was written by another version of learned views: read it with that version")
    return told, state


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        raise UserError(f"{path} cannot be read: {problem}") from problem
