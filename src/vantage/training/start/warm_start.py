"""Start a run from what another has learned: which of its tensors fit, and what starts anew.

* Networks. The backbone must fit. Heads are taken where names and shapes agree. One network goes to every network here,
  several go by their names; a momentum encoder that the other run lacks begins as a copy of its trained network.
* Optimizer. What it keeps of every parameter that was taken, where it is of the same kind.
* Memories. They fit where the same images were encoded by a network that was taken whole. An equal memory is then taken
  as it is, clusters included; of another bank the rows are taken, and clustered. Every other memory is filled with what
  the warm network makes of the images (`vantage.training.start.first_rows`), and then clustered.
* Estimators with a state (NCE's normalizer), where they are equal and the memory would fit.

A file of weights (`vantage.encoders.weights`) gives every backbone its tensors; all else starts anew.

Steps count from 0, so schedules and adaptive numbers start anew. The order of the images and every draw are functions
of (seed, step, image): runs of one seed from one checkpoint see the same images in the same order. A checkpoint of step
0 is written at once, so that resuming never needs the other run again.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from vantage.composition.codec import decode
from vantage.encoders.weights import read_weights
from vantage.errors import UserError
from vantage.storage.files import digest_of_file
from vantage.storage.provenance import read_provenance
from vantage.training import checkpoint, settings
from vantage.training.run import Run

__all__ = ["WarmStart", "read_start", "recorded_start"]


@dataclass(frozen=True, eq=False)
class WarmStart:
    """A checkpoint of another run, or a file of weights, in memory."""

    path: Path
    """The checkpoint, or the file."""

    run: Run | None
    """The run that it is of; none for a file."""

    images: dict[str, Any] | None
    """Which images that run was trained on, where its provenance says so."""

    tensors: dict[str, Tensor]
    """Everything in the checkpoint."""

    facts: dict[str, Any]
    """Its step, and what the optimizer has beside tensors; empty for a file."""

    digest: str
    """SHA-256 of the file of tensors."""

    def state(self, *path: str) -> dict[str, Tensor]:
        """The tensors below a path, by the rest of their names."""
        prefix = "".join(f"{name}." for name in path)
        return {name.removeprefix(prefix): value for name, value in self.tensors.items() if name.startswith(prefix)}


def read_start(path: Path | str) -> WarmStart:
    """The newest checkpoint of a run's folder, the checkpoint at `path`, or the weights in a safetensors file.

    Raises `UserError` where there is none, or where it is damaged.
    """
    path = Path(path)
    if path.is_file():
        return WarmStart(path, None, None, read_weights(path), {}, digest_of_file(path))
    at_checkpoint = path.parent.name == "checkpoint" and not (path / settings.FILE).exists()
    folder = path.parent.parent if at_checkpoint else path
    run_settings = settings.read(folder)
    newest = path if at_checkpoint else checkpoint.latest(folder)
    if newest is None or not newest.is_dir():
        missing = f"{folder} holds no checkpoint yet" if newest is None else f"there is no checkpoint {newest}"
        raise UserError(f"{missing}: let the run reach it, or start from another")
    tensors, facts = checkpoint.load(newest)
    run = decode(facts["run"], Run) if "run" in facts else run_settings
    records = read_provenance(folder)
    images = records[0]["data"] if records else None
    return WarmStart(newest, run, images, tensors, facts, checkpoint.digest_of(newest))


def recorded_start(folder: Path) -> WarmStart | None:
    """What a run that was stopped before its first checkpoint starts from; `None` where it starts from nothing.

    Raises `UserError` where that has changed since.
    """
    record = next(iter(read_provenance(folder)), {}).get("init")
    if record is None:
        return None
    start = read_start(record["from"])
    if start.digest != record["sha256"]:
        raise UserError(
            f"the run in {folder} was stopped before its first checkpoint, and {start.path}, from which it starts, has"
            " changed since: remove the folder, and start again"
        )
    return start
