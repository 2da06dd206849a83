"""Start a run from what another has learned: which of its tensors are taken, and what starts anew.

* Networks. The backbone must fit. Heads are taken if names and shapes agree. A single network is taken for every
  network here, several are matched in order. A momentum encoder that the other run lacks starts as a copy of its
  trained network.
* Optimizer. If it is of the same kind, its state is taken for every parameter that was taken.
* Memories. A memory fits if the same images were encoded by a network that was taken whole. If it is also equal, it is
  taken as it is, clusters included; of any other bank, the rows are taken and then clustered. Every other memory is
  filled with the warm network's vectors of the images (`vantage.training.start.first_rows`), and then clustered.
* Estimators with a state (NCE's normalizer). They are taken if they are equal and the memory would fit.

A file of weights (`vantage.encoders.weights`) gives every backbone its tensors; everything else starts anew.

Steps count from 0, so schedules and adaptive numbers start anew. The order of the images and every draw are functions
of (seed, step, image), so runs with the same seed from the same checkpoint see the same images in the same order. A
checkpoint of step 0 is written at once, so that resuming never needs the other run again.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from vantage.composition.codec import decode
from vantage.encoders.weights import read_weights
from vantage.errors import UserError
from vantage.storage.files import digest_of_file
from vantage.storage.provenance import first_images, read_provenance
from vantage.storage.state import below
from vantage.training.folder import checkpoint, settings
from vantage.training.run import Run

__all__ = ["WarmStart", "read_start", "recorded_start", "run_to_start"]


@dataclass(frozen=True, eq=False)
class WarmStart:
    """A checkpoint of another run, or a file of weights, in memory."""

    path: Path
    """The checkpoint, or the file."""

    run: Run | None
    """The run that the checkpoint is of; None for a file."""

    images: dict[str, Any] | None
    """Number and fingerprint of the images that run was trained on; None if its provenance has none."""

    tensors: dict[str, Tensor]
    """All tensors in the checkpoint or file."""

    facts: dict[str, Any]
    """The checkpoint's step, and the state of its optimizer other than tensors; empty for a file."""

    digest: str
    """SHA-256 of the file of tensors."""

    def state(self, *path: str) -> dict[str, Tensor]:
        """The tensors under a path, by the rest of their names."""
        return below(self.tensors, "".join(f"{name}." for name in path))


def read_start(path: Path | str) -> WarmStart:
    """The newest checkpoint of a run's folder, the checkpoint at `path`, or the weights in a safetensors file.

    Raises `UserError` if there is none, or if it is damaged.
    """
    path = Path(path)
    if path.is_file():
        return WarmStart(path, None, None, read_weights(path), {}, digest_of_file(path))
    folder = _folder_of(path)
    run_settings = settings.read(folder)
    newest = checkpoint.newest(folder) if folder == path else path
    if not newest.is_dir():
        raise UserError(f"there is no checkpoint {newest}: let the run reach it, or start from another")
    tensors, facts = checkpoint.load(newest)
    run = decode(facts["run"], Run) if "run" in facts else run_settings
    return WarmStart(newest, run, first_images(folder), tensors, facts, checkpoint.digest_of(newest))


def run_to_start(path: Path | str) -> Run | None:
    """The run that `read_start` would find there, by its settings alone; None for a file of weights."""
    path = Path(path)
    return None if path.is_file() else settings.read(_folder_of(path))


def _folder_of(path: Path) -> Path:
    at_checkpoint = path.parent.name == "checkpoint" and not (path / settings.FILE).exists()
    return path.parent.parent if at_checkpoint else path


def recorded_start(folder: Path) -> WarmStart | None:
    """The warm start of a run that was stopped before its first checkpoint; `None` if it has none.

    Raises `UserError` if the checkpoint or file that it starts from has changed since.
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
