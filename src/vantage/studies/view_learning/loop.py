"""The loop of view learning: steps, epochs, checkpoints, and how an interrupted learning resumes.

No random state is saved, because each step is a function of the seed and the step. A checkpoint holds networks,
optimizers and sums, and the steps after it are the same, bit for bit on a CPU.
"""

import math
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vantage import draws
from vantage.composition.codec import encode
from vantage.data import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.machine.usual_torch import usual_torch
from vantage.progress import Progress, QuietProgress, ending
from vantage.storage.metrics import Metrics
from vantage.storage.state import below
from vantage.storage.strangers import check_run_folder
from vantage.studies.view_learning.game import Game, LabeledBatch, NotFinite
from vantage.studies.view_learning.images import LearningImages, images_of
from vantage.studies.view_learning.learning import LearnedViews, ViewLearning
from vantage.studies.view_learning.means import Means, evaluate_held_out, measure_statistics
from vantage.studies.view_learning.record import (
    FILE,
    check_same_settings,
    epochs_done,
    read_learning,
    write_settings,
)
from vantage.training.folder import checkpoint, slots
from vantage.training.folder.writer import only_writer
from vantage.training.images import open_images
from vantage.training.signals import Signals
from vantage.training.start.doubts import tiny_views
from vantage.views.colors.flows import FlowNetwork
from vantage.views.colors.learned import BEST, LAST, learned_space, write_learned

__all__ = ["LearnedViews", "learn"]


@usual_torch()
def learn(
    learning: ViewLearning, folder: Path | str, progress: Progress | None = None, *, source: Source | None = None
) -> LearnedViews:
    """Learn views from images and save everything in `folder`; another call with the same folder resumes.

    `source`, any object with the methods of `Source`, gives the images in place of `learning.data.path`.

    SIGINT and SIGTERM save a checkpoint and stop early. Raises `UserError` if the folder holds a learning with other
    settings, if the images cannot be used, if labels are needed and missing, and if a loss is no longer finite; in the
    last case, the last finite state is kept.
    """
    folder, device = Path(folder), Work(device=learning.device).resolved_device()
    with only_writer(folder, "learning views in"), draws.torch_seed(learning.seed, device):
        return _learn(learning, folder, progress or QuietProgress(), source, device)


def _learn(
    learning: ViewLearning, folder: Path, progress: Progress, images_of_caller: Source | None, device: torch.device
) -> LearnedViews:
    check_run_folder(folder)
    resuming = (folder / FILE).exists()
    if resuming:
        check_same_settings(read_learning(folder), learning, folder)
    source, note = open_images(learning.data, source=images_of_caller)
    for line in (note, *tiny_views(learning.crop)):
        progress.line(line)
    images = images_of(learning, source, device)
    game = Game(learning, images.classes, device)
    _try(game, learning, images)
    write_settings(learning, folder, source, resuming)
    learning_run = _LearningRun(learning, folder, images, game, progress)
    newest = checkpoint.latest(folder)
    if newest is None and resuming and epochs_done(folder)[0] == learning.epochs:
        learning_run.step = learning_run.total
        progress.line("all steps are taken already; the checkpoints were removed")
    elif newest:
        learning_run.restore(newest)
        state = "all steps are taken already" if learning_run.step == learning_run.total else "continuing"
        progress.line(f"{state}: at step {learning_run.step:,} of {learning_run.total:,}")
    else:
        learning_run.save()  # so that there is always a finite state
    with Signals() as stopping, ending(progress):
        learning_run.run(stopping)
    spaces = [learned_space(folder / name) if (folder / name).is_file() else None for name in (LAST, BEST)]
    return LearnedViews(folder, learning_run.step, learning_run.step == learning_run.total, *spaces)


class _LearningRun:
    """The steps of a learning, and their state."""

    def __init__(
        self, learning: ViewLearning, folder: Path, images: LearningImages, game: Game, progress: Progress
    ) -> None:
        self.learning, self.folder, self.images, self.game, self.progress = learning, folder, images, game, progress
        self.uses_all_images = any(not term.labeled for term in learning.terms)
        pair = (images.every, images.held_out) if self.uses_all_images else (images.labeled, images.held_out_labeled)
        self.leading, self.judging = (stream for stream in pair if stream is not None)  # the others are parts of them
        self.steps, self.device = self.leading.steps, self.leading.device
        self.total = learning.epochs * self.steps
        self.step, self.means, self.best, self.seconds = 0, Means(), math.inf, 0.0

    def run(self, stopping: Signals) -> None:
        """Run all remaining steps, or until a signal."""
        start, metrics = time.monotonic() - self.seconds, Metrics(self.folder, self.step)
        every = self.images.every.batches(self.step) if self.uses_all_images else None
        labeled = self.images.labeled.batches(self.step) if self.images.labeled else None
        self.progress.start(f"learning views ({self.learning.name})", self.total, self.step)
        while self.step < self.total:
            self._take_step(next(every).images if every else None, next(labeled) if labeled else None)
            self.seconds = time.monotonic() - start
            if self.step % self.steps == 0:
                self._end_epoch(metrics)
            if stopping.requested:
                self.save()
                break
            if self.step % 5 == 0:
                self.progress.advance(self.step, self._note())

    def _take_step(self, images: Tensor | None, labeled: LabeledBatch | None) -> None:
        draws.set_torch_seed(draws.mix(self.learning.seed, self.step, draws.Purpose.VIEW_LEARNING_STEP), self.device)
        try:
            self.means.add(self.game.step(images, labeled))
        except NotFinite as problem:
            self.save()
            self._write(LAST)
            raise UserError(
                f"learning views stopped at step {self.step + 1:,}: {problem}. The state before it is kept in"
                f" {self.folder / LAST}. Lower the rates, or bound the flow (--set flow.coupling.bound=1)"
            ) from problem
        self.step += 1

    def _note(self) -> str:
        return f"epoch {min(self.step // self.steps + 1, self.learning.epochs)}  {self.means.line()}"

    def _end_epoch(self, metrics: Metrics) -> None:
        epoch = self.step // self.steps
        self.leading.report_missed(self.progress)
        row: dict[str, Any] = {"epoch": epoch, "step": self.step, **self.means.values()}
        if self.uses_all_images:
            row["bound"] = math.log(self.learning.batch_size)
        row |= evaluate_held_out(self.game.players, self.images)
        self.judging.report_missed(self.progress)
        row["seconds"] = round(self.seconds, 3)
        first = min(math.floor(self.learning.best_after * self.learning.epochs) + 1, self.learning.epochs)
        objective = row["held_out.objective"]
        best = epoch >= first and objective < self.best
        if best:
            self.best = objective
            self._write(BEST)
        row["best"] = self.best if math.isfinite(self.best) else None
        words = f", the best {'so far' if first == 1 else f'from epoch {first} on'}" if best else ""
        judged = f"objective on held-out images {objective:.4f}{words}"
        self.progress.line(f"epoch {epoch}: {self.means.line()}; {judged}")
        self.means = Means()
        self._write(LAST)
        metrics.write(row)
        self.save()

    def _write(self, name: str) -> None:
        flow = self.game.players.flow
        assert isinstance(flow, FlowNetwork)
        choice, statistics = self.learning, measure_statistics(flow, self.images)
        write_learned(self.folder / name, choice.flow, flow, choice.space, statistics, choice.channels)

    def save(self) -> None:
        """Write a checkpoint."""
        tensors = {f"players.{name}": value for name, value in self.game.players.state_dict().items()}
        facts: dict[str, Any] = {"learning": encode(self.learning), "seconds": self.seconds}
        facts |= {"means": self.means.state(), "best": self.best if math.isfinite(self.best) else None}
        for name, optimizer in self._optimizers():
            state, facts[name] = slots.optimizer_state(optimizer)
            tensors |= {f"{name}.{path}": value for path, value in state.items()}
        checkpoint.save(self.folder, self.step, tensors, facts)

    def restore(self, newest: Path) -> None:
        """Restore a checkpoint."""
        tensors, facts = checkpoint.load(newest)
        checkpoint.fill(self.game.players, below(tensors, "players."), newest)
        with checkpoint.restoring(newest):
            for name, optimizer in self._optimizers():
                slots.restore_optimizer(optimizer, below(tensors, f"{name}."), facts[name])
            self.step, self.seconds = int(facts["step"]), float(facts["seconds"])
            self.means, self.best = Means.of(facts["means"]), float("inf" if facts["best"] is None else facts["best"])

    def _optimizers(self) -> list[tuple[str, torch.optim.Optimizer]]:
        optimizers = (("down", self.game.descent), ("up", self.game.ascent))
        return [(name, optimizer) for name, optimizer in optimizers if optimizer is not None]


def _try(game: Game, learning: ViewLearning, images: LearningImages) -> None:
    """Run every network on two images, to report a mismatch before anything is written."""
    size = learning.crop.crop.size
    pair = torch.zeros(2, 3, size, size, device=images.every.device)
    label = torch.zeros(2, dtype=torch.int64, device=images.every.device)
    game.players.eval()
    try:
        with torch.no_grad():
            game.players.objective(pair, LabeledBatch(pair, label))
    except RuntimeError as problem:
        channels = " and ".join(str(len(part)) for part in learning.channels)
        raise UserError(
            f"the networks do not fit the views, which have {channels} channels of {size} pixels: {str(problem)[:160]}"
        ) from problem
