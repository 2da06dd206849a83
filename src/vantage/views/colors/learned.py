"""A learned color space: a frozen flow, read from a file that is identified by its digest.

The file is safetensors: the flow's parameters, and as metadata (JSON) the kind of flow, the color space of its input,
the mean and standard deviation of each output channel, and the channels of each view if they are not `ONE_AND_TWO`.
Nothing in it is executed.

b: images   h, w: height and width in pixels
"""

import functools
import hashlib
import json
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
from vantage.storage.files import digest_of_file, write_result
from vantage.storage.strangers import check_run_folder
from vantage.views.colors.flows import Flow, FlowNetwork
from vantage.views.colors.spaces import ColorSpace
from vantage.views.colors.statistics import Statistics

__all__ = ["BEST", "LAST", "ONE_AND_TWO", "LearnedSpace", "PairOfViews", "learned_space", "write_learned"]

BEST = "best.safetensors"
"""Name of the file with the best state, in the folder that `vantage views learn` writes."""
LAST = "last.safetensors"
"""Name of the file with the last state."""

PairOfViews = tuple[tuple[int, ...], tuple[int, ...]]
"""Channels of each of two views."""
ONE_AND_TWO: PairOfViews = ((0,), (1, 2))
"""The first channel, and the others, as in CMC and InfoMin."""

_META, _SCHEMA = "vantage.learned_views", 1


@dataclass(frozen=True)
class LearnedSpace:
    """The channels that a trained flow computes from an image (InfoMin, Tian et al., arXiv 2005.10243, section 4.2).

    Two spaces are equal if their digests are, wherever the files are. A run that uses one keeps a copy beside its
    settings. Raises `UserError` on first use if the file is missing or does not have this digest.
    """

    digest: str
    """SHA-256 of the file, in hexadecimal digits."""

    file: str = field(compare=False, repr=False)
    """The file, as `vantage views learn` wrote it. It is not printed, so that records of results, which hold the
    printed view, are found again after a run was moved."""

    statistics: Statistics
    """Mean and standard deviation of the learned channels, over images that the flow was trained on."""

    channels: PairOfViews = ONE_AND_TWO
    """The channels that were learned as each of two views."""

    def convert(self, images: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 3 h w"]:
        """Red, green and blue from 0 to 1 as the learned channels, without a gradient."""
        flow = _open(self.file, self.digest, str(images.device), images.dtype)
        with torch.no_grad():
            normalize = flow.space.statistics.normalize()
            channels = normalize.apply(flow.space.convert(images), torch.empty(images.shape[0], 0))
            return flow.network(channels)[0]

    def copy_to(self, folder: Path) -> None:
        """Copy the file to a folder, where `beside` finds it. Raises `UserError` if the file is missing, does not
        have this digest, or cannot be copied."""
        _open(self.file, self.digest, "cpu", torch.float32)
        copy = self._copy(folder)
        if copy.is_file() and (Path(self.file).samefile(copy) or _digest(copy) == self.digest):
            return
        write_result(copy, Path(self.file).read_bytes(), "the copy of the learned views")

    def beside(self, folder: Path) -> "LearnedSpace":
        """The same channels, read from the copy in this folder if there is one."""
        copy = self._copy(folder)
        return replace(self, file=str(copy.absolute())) if copy.is_file() else self

    def _copy(self, folder: Path) -> Path:
        return folder / f"views-{self.digest[:16]}.safetensors"


def learned_space(path: Path | str) -> LearnedSpace:
    """The color space that `vantage views learn` wrote to `path`: a file, or a folder, which stands for its best state
    and, as long as there is none, for its last.

    Raises `UserError` if there is none.
    """
    path = Path(path)
    if path.is_dir():
        check_run_folder(path)
        states = [path / name for name in (BEST, LAST) if (path / name).is_file()]
        if not states:
            raise UserError(
                f"{path} holds no learned views: there is no {LAST} in it. Name the folder that was given to"
                " `vantage views learn` as --out"
            )
        path = states[0]
    if not path.is_file():
        raise UserError(f"{path} does not exist: name a folder that `vantage views learn` wrote, or a file in it")
    file, digest = str(path.absolute()), _digest(path)
    flow = _open(file, digest, "cpu", torch.float32)
    return LearnedSpace(digest, file, flow.statistics, flow.channels)


def write_learned(
    file: Path,
    flow: Flow,
    network: FlowNetwork,
    space: ColorSpace,
    statistics: Statistics,
    channels: PairOfViews = ONE_AND_TWO,
) -> LearnedSpace:
    """Write a trained flow to a file, whole or not at all, and return the color space that reads it.

    The flow's input is the channels of `space`, normalized with the space's statistics; `statistics` are those of the
    flow's output, and `channels` those of each view. Raises `UserError` if the file cannot be written.
    """

    metadata = {
        "schema": _SCHEMA,
        "flow": encode(flow),
        "space": encode(space),
        "statistics": encode(statistics),
        **({} if channels == ONE_AND_TWO else {"channels": encode(channels)}),
    }
    state = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    content = save(state, {_META: json.dumps(metadata, allow_nan=False)})
    write_result(file, content, "the learned views")
    return LearnedSpace(hashlib.sha256(content).hexdigest(), str(file.absolute()), statistics, channels)


class _LearnedFlow(NamedTuple):
    """The content of a file of learned views."""

    space: ColorSpace
    network: FlowNetwork
    statistics: Statistics
    channels: PairOfViews


@functools.lru_cache(maxsize=16)
def _open(file: str, digest: str, device: str, dtype: torch.dtype) -> _LearnedFlow:
    """The frozen flow on a device; read once per process."""
    path = Path(file)
    if not path.is_file():
        raise UserError(
            f"the learned views {file} are missing: put the file back, or learn views again (vantage views learn)"
        )
    actual = _digest(path)
    if actual != digest:
        raise UserError(
            f"{file} is not the right file of learned views: its SHA-256 begins with {actual[:12]}, not"
            f" {digest[:12]}. Put the right file back, or start a new run with this one"
        )
    metadata, state = _read_file(path)

    flow: Flow = decode(metadata.get("flow"), Flow, path="flow")
    space: ColorSpace = decode(metadata.get("space"), ColorSpace, path="space")
    try:
        if flow.couplings * getattr(flow.coupling, "layers", 1) > len(state):
            raise ValueError(f"{flow.couplings:,} couplings in {len(state):,} tensors")
        with torch.device("meta"):  # a flow that does not fit the file is refused before it takes memory
            network = flow.build()
        network.load_state_dict(state, assign=True)
    except (RuntimeError, TypeError, ValueError, OverflowError) as problem:
        raise UserError(f"{file} does not hold the flow that it names: {str(problem)[:200]}") from problem
    network = network.to(device=device, dtype=dtype).eval().requires_grad_(False)
    statistics = decode(metadata.get("statistics"), Statistics, path="statistics")
    channels = decode(metadata.get("channels", encode(ONE_AND_TWO)), PairOfViews, path="channels")
    return _LearnedFlow(space, network, statistics, channels)


def _read_file(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            metadata = json.loads((file.metadata() or {})[_META])
            state = {name: file.get_tensor(name) for name in file.keys()}
    except (OSError, SafetensorError, KeyError, ValueError, RecursionError) as problem:
        raise UserError(
            f"{path} holds no learned views ({problem}): name what `vantage views learn` wrote"
        ) from problem
    if not isinstance(metadata, dict) or metadata.get("schema") != _SCHEMA:
        raise UserError(f"{path} was written by another version of learned views: read it with that version")
    return metadata, state


def _digest(path: Path) -> str:
    try:
        return digest_of_file(path)
    except OSError as problem:
        raise UserError(f"{path} cannot be read: {problem}") from problem
