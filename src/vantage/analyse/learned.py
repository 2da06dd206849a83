"""What a run has learned, as a checkpoint holds it: whole networks, with heads and slow copies, and the stores."""

from dataclasses import dataclass
from pathlib import Path

import torch

from vantage import checkpoint, settings
from vantage.errors import UserError
from vantage.learner import Learner
from vantage.record import read_provenance
from vantage.run import Run

__all__ = ["Learned", "learned", "random_learned"]

_LEARNER = "learner."


@dataclass(frozen=True)
class Learned:
    """A run's learner in evaluation mode, without gradients, and where it comes from."""

    name: str
    """What it is called in tables and pictures: the run's folder, or "random encoder"."""

    run: Run
    """Its settings."""

    learner: Learner
    """Networks, stores and estimators, on the CPU at first; an analysis moves them to its device, in place."""

    images: int
    """How many images it was trained on."""

    step: int
    """Optimizer steps made."""

    folder: Path | None = None
    """Folder of the run; none for a random encoder."""

    fingerprint: str = ""
    """Fingerprint of the images it began on; empty where the folder does not tell it."""

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps of an epoch, incomplete batches left out."""
        return max(1, self.images // self.run.batch)

    @property
    def epochs(self) -> float:
        """Epochs trained so far."""
        return self.step / self.steps_per_epoch


def learned(run_folder: Path, allow: tuple[str, ...] = (), at: Path | None = None) -> Learned:
    """What a run's newest checkpoint holds, or the one in the folder `at`. Nothing in the folder is executed.

    `allow` names modules of your own whose parts the run uses. Raises `UserError` where there is no checkpoint, where
    it is damaged or altered, or where it does not fit the settings.
    """
    run = settings.read(run_folder, allow)
    found = at or checkpoint.latest(run_folder)
    if found is None:
        raise UserError(f"{run_folder} holds no checkpoint yet: train first, or let it reach the first one")
    tensors, facts = checkpoint.load(found)
    state = {name.removeprefix(_LEARNER): held for name, held in tensors.items() if name.startswith(_LEARNER)}
    told = read_provenance(run_folder)
    rows = [len(held) for name, held in state.items() if name.startswith("stores.") and name.endswith(".image")]
    images = int(told[0]["data"]["images"]) if told else max(rows, default=run.batch)
    learner = _fresh(run, images, run.seed)
    checkpoint.fill(learner, state, found)
    fingerprint = str(told[0]["data"]["fingerprint"]) if told else ""
    name = Path(run_folder).absolute().name
    return Learned(name, run, learner, images, int(facts["step"]), Path(run_folder), fingerprint)


def random_learned(like: Learned, seed: int = 0) -> Learned:
    """The baseline of the same architecture, freshly initialised from `seed`: what training added is the difference."""
    return Learned("random encoder", like.run, _fresh(like.run, like.images, seed), like.images, 0)


def _fresh(run: Run, images: int, seed: int) -> Learner:
    with torch.random.fork_rng(devices=[]):  # the caller's generator stays where it is
        torch.manual_seed(seed)
        return Learner(run.encoders, run.branches, images, run.seed).eval().requires_grad_(False)
