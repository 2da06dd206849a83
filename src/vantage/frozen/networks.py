"""The trained networks of a run from a checkpoint, with their heads, momentum encoders and stores."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from vantage import draws
from vantage.branch import Branch
from vantage.composition.fitting import everywhere
from vantage.data.sources.source import Source
from vantage.errors import UserError
from vantage.facts.results import RANDOM_ENCODER
from vantage.frozen.outside import outside_weights
from vantage.learner import Learner
from vantage.machine.usual_torch import usual_torch
from vantage.records import Keys
from vantage.schedules import Adaptive, Constant
from vantage.storage.metrics import read_metrics
from vantage.storage.provenance import first_images
from vantage.storage.state import below
from vantage.training.folder import checkpoint, settings
from vantage.training.images import training_part
from vantage.training.run import Run

__all__ = ["TrainedNetworks", "random_networks", "trained_networks", "untrained_networks"]

_LEARNER = "learner."


@dataclass(frozen=True)
class TrainedNetworks:
    """A run's learner in evaluation mode, without gradients, and where it comes from."""

    name: str
    """Its name in tables and pictures: the run's folder, the name of weights from elsewhere, or "random encoder"."""

    run: Run
    """Its settings."""

    learner: Learner
    """Networks, stores and estimators, on the CPU at first; an analysis moves them to its device, in place."""

    images: int
    """Number of images that it was trained on; meaningless for weights from elsewhere."""

    step: int
    """Number of optimizer steps so far."""

    folder: Path | None = None
    """Folder of the run; None for a random encoder and for weights from elsewhere."""

    checkpoint: Path | None = None
    """Its checkpoint; None if there is no folder."""

    fingerprint: str = ""
    """Fingerprint of the images it started on; empty if the folder has no record of it."""

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps in an epoch, without incomplete batches."""
        return max(1, self.run.steps_per_epoch(self.images))

    @property
    def epochs(self) -> float:
        """Epochs trained so far."""
        return self.step / self.steps_per_epoch

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The branches, with the current values of adaptive numbers."""
        return self._with(self.learner.adaptive_values())

    def branches_after(self, epoch: int) -> tuple[Branch, ...] | None:
        """The branches, with adaptive numbers as they were after that many epochs; None if that epoch is not over."""
        if epoch == 0 or not self.learner.adaptive:
            return self.run.branches
        rows = read_metrics(self.folder) if self.folder else []
        names = [f"adapted.{number}" for number in range(len(self.learner.adaptive))]
        complete = [row for row in rows if row.get("epoch") == epoch and all(name in row for name in names)]
        return self._with([float(complete[-1][name]) for name in names]) if complete else None

    def pool(self, branch: int) -> Keys:
        """The keys in a branch's store; empty if it compares within a batch."""
        device = next(self.learner.parameters()).device
        none = torch.zeros(0, self.learner.networks.width, device=device)
        pool = self.learner.store(branch).read(Keys(none, torch.zeros(0, dtype=torch.int64, device=device)))
        assert isinstance(pool, Keys)  # not a shard, since there is one process
        return pool

    def before(self) -> "TrainedNetworks | None":
        """The networks of the previous checkpoint, if it is still there."""
        older = (
            [path for path in checkpoint.complete_checkpoints(self.folder) if path != self.checkpoint]
            if self.folder
            else []
        )
        if not older or self.checkpoint is None or older[0] > self.checkpoint:
            return None
        learner, step = _load_learner(self.run, self.images, older[0])
        return replace(self, learner=learner, step=step, checkpoint=older[0])

    def trained_on(self, source: Source) -> Source:
        """The images that the run was trained on, whose numbers its stores use: either `source`, or the part of it that
        training took (`Data.hold_out`, `Data.max_images`). Raises `UserError` if it is neither."""
        data, whole = self.run.data, source
        if (data.hold_out or data.max_images) and len(source) > self.images:
            source = training_part(source, data)
        self.check_images(source if len(source) == self.images else whole)
        return source

    def check_images(self, source: Source) -> None:
        """Raises `UserError` unless these are the images that the run was trained on, whose numbers its stores
        use."""
        fingerprint, own = source.fingerprint(), self.fingerprint
        if len(source) != self.images or (own and fingerprint != own):
            raise UserError(
                f"{self.name} was trained on {self.images:,} images (fingerprint {own[:8] or 'unknown'}), but"
                f" these are {len(source):,} ({fingerprint[:8]}): name the images it was trained on, whose numbers"
                " its memory uses"
            )

    def _with(self, values: list[float]) -> tuple[Branch, ...]:
        constants = dict(zip(self.learner.adaptive, values, strict=True))
        return everywhere(self.run.branches, lambda p: Constant(constants[p]) if isinstance(p, Adaptive) else p)


@usual_torch()
def trained_networks(run_folder: Path | str) -> TrainedNetworks:
    """The networks of a run's newest checkpoint, or those with weights from elsewhere (`torchvision:NAME=FILE`).
    Nothing in a folder is executed.

    Raises `UserError` if there is no checkpoint, if it is damaged or altered, or if it does not fit the settings.
    """
    run_folder = Path(run_folder)
    weights = outside_weights(run_folder)
    if weights is not None:
        run = weights.run()
        learner = _new_learner(run, run.batch_size, run.seed)
        weights.fill(learner.networks)
        return TrainedNetworks(weights.name, run, learner, run.batch_size, 0)
    run = settings.read(run_folder)
    newest = checkpoint.newest(run_folder)
    data = first_images(run_folder) or {"images": _count_images(newest, run), "fingerprint": ""}
    images = int(data["images"])
    name, (learner, step) = Path(run_folder).absolute().name, _load_learner(run, images, newest)
    return TrainedNetworks(name, run, learner, images, step, Path(run_folder), newest, str(data["fingerprint"]))


@usual_torch()
def random_networks(like: TrainedNetworks, seed: int = 0) -> TrainedNetworks:
    """A baseline with the same architecture, freshly initialized from `seed`, to show what training adds."""
    return untrained_networks(like.run, like.images, seed)


@usual_torch()
def untrained_networks(run: Run, images: int, seed: int) -> TrainedNetworks:
    """The networks of a run on a number of images before its first step, initialized from `seed`."""
    return TrainedNetworks(RANDOM_ENCODER, run, _new_learner(run, images, seed), images, 0)


def _load_learner(run: Run, images: int, file: Path) -> tuple[Learner, int]:
    """The learner that a checkpoint holds, and its step."""
    checkpoint.check_fits(file, lambda: Learner(run.encoders, run.branches, images, run.seed), _LEARNER)
    tensors, facts = checkpoint.load(file)
    learner = _new_learner(run, images, run.seed)
    checkpoint.fill(learner, below(tensors, _LEARNER), file)
    return learner, int(facts["step"])


def _count_images(file: Path, run: Run) -> int:
    """The number of images that a run without a record of them was trained on: a bank has a row for each."""
    rows = [len(tensor) for name, tensor in checkpoint.load(file)[0].items() if name.endswith(".image")]
    return max(rows, default=run.batch_size)


def _new_learner(run: Run, images: int, seed: int) -> Learner:
    with draws.torch_seed(seed):
        return Learner(run.encoders, run.branches, images, run.seed).eval().requires_grad_(False)
