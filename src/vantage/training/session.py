"""What a run computes with (Fabric, the learner, the optimizer and the images), and one training step."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vantage import processes
from vantage.composition.codec import encode
from vantage.data import Batch, Source
from vantage.encoders.normalization.grouped import set_accumulation
from vantage.errors import UserError
from vantage.learner import Learner, Step
from vantage.step import joint_loss, mean_of_parts
from vantage.storage.state import below
from vantage.training.computing.buckets import lay_out
from vantage.training.computing.compiling import compile_learner, compile_networks
from vantage.training.computing.cuda_graphs import can_record, record_networks
from vantage.training.computing.passes import encodes_apart, forward_backward
from vantage.training.feed import open_feed
from vantage.training.folder import checkpoint, settings
from vantage.training.folder.background import BackgroundWriter, trains_meanwhile
from vantage.training.folder.kept_epochs import is_kept
from vantage.training.folder.same_run import refuse_conflicts
from vantage.training.folder.slots import optimizer_state, restore_optimizer
from vantage.training.run import Run
from vantage.training.signals import anywhere
from vantage.training.start.footprint import check_footprint
from vantage.training.start.try_optimizer import build_optimizer
from vantage.training.start.try_parts import try_branches, try_networks
from vantage.training.start.try_schedules import try_schedules
from vantage.training.watching.branches import monitor_of
from vantage.training.watching.stopwatch import Stopwatch
from vantage.views.operations.share import ShareGenerator

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["Session", "check_belongs", "refuse_edited"]

_CHEAP_SECONDS, _SHARE_OF_WRITING = 5.0, 0.1  # of checkpoints after epochs


class Session:
    """What a run computes with; built the same way at the start and on resuming."""

    def __init__(
        self, run: Run, fabric: "Fabric", source: Source, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """`progress` gets (images done, images in all) while images are decoded into memory."""
        self.run, self.fabric, self.source = run, fabric, source
        torch.manual_seed(run.seed)
        check_footprint(run, len(source))
        try_schedules(run, max(1, run.steps_per_epoch(len(source))))
        try_branches(run, len(source))
        self.side = try_networks(run, source)  # of full-size views, in pixels
        torch.manual_seed(run.seed)
        self.learner = Learner(run.encoders, run.branches, len(source), run.seed)
        set_accumulation(self.learner.networks, run.accumulate)
        self.learner.networks.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self.learner.to(fabric.device)  # an optimizer of a user's own is tried there
        optimizer = build_optimizer(run.optimizer, self.learner)
        record = run.hardware.graphs and can_record(run, fabric.device)
        if run.hardware.compile:
            apart = record or encodes_apart(self.learner.networks, run.branches, run.accumulate)
            (compile_networks if apart else compile_learner)(self.learner)
        if record:
            record_networks(self.learner)
        self.model, self.optimizer = fabric.setup(self.learner, optimizer)
        self.model.mark_forward_method("encode")
        lay_out(self.model._forward_module)
        self.optimizer.zero_grad(set_to_none=True)
        self.monitor = monitor_of(run, self.learner).to(fabric.device)
        self.feed = open_feed(run, source, processes.rank(), processes.count(), fabric.device, progress)
        self.generator = ShareGenerator()
        self.writer = BackgroundWriter(trains_meanwhile(fabric.device))
        self.unsaved = Stopwatch()

    def learning_rate(self, step: int) -> float:
        """Learning rate of a step."""
        return self.run.learning_rate(step, self.feed.steps, self.run.epochs)

    def step(self, batch: Batch, step: int) -> Tensor:
        """One optimizer step; returns its loss without waiting for it."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(step)
        self.learner.before_step(step)
        results = forward_backward(self, batch, step)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.learner.after_step([result.fresh for result in results], step)
        return self._monitor(results)

    def _monitor(self, results: list[Step]) -> Tensor:
        """Add the parts of a step to the monitor; returns the loss of the step."""
        loss = joint_loss([result.fresh for result in results])
        losses = mean_of_parts([result.losses for result in results], [result.fresh.shares for result in results])
        for result in results:
            self.monitor.add(loss, *result.watched[0])
            self.monitor.add_branches(losses, result.watched)
        return loss

    def views_of(self, batch: Batch, step: int) -> list[Tensor]:
        """The views of a batch at a step, drawn from the session's generator."""
        resizing, share = self.run.resizing, self._share(step)
        if resizing is None:
            return self.feed.views_of(batch, self.generator)
        feed = replace(self.feed, views=resizing.maker(self.feed.views, share))
        return [resizing(view, share) for view in feed.views_of(batch, self.generator)]

    def work(self, step: int) -> float:
        """Share of the run's work that is done before a step: a step before the views have grown counts
        as less work."""
        resizing, share = self.run.resizing, self._share(step)
        return share if resizing is None else resizing.work(share, self.side)

    def _share(self, step: int) -> float:
        return step / (self.run.epochs * self.feed.steps)

    def save(self, folder: Path, step: int, clock: float, then: Callable[[], object] = lambda: None) -> None:
        """Write a checkpoint, and do `then` after it, both on the first process and, where others can train meanwhile,
        in the background. `clock` is the number of seconds trained so far. Raises what `BackgroundWriter.finish` does
        for the write before, and at once if this one is not in the background."""
        self.writer.finish()  # before the copy, so that there is never more than one
        tensors = {f"learner.{name}": value for name, value in self.learner.state_dict().items()}
        tensors |= {f"monitor.{name}": processes.total(value) for name, value in self.monitor.state_dict().items()}
        slots, facts = optimizer_state(self.optimizer.optimizer)
        scaler = self.fabric.strategy.precision.state_dict()
        facts = {
            "optimizer": facts,
            "scaler": scaler,
            "seconds": clock,
            "run": encode(self.run),
            "schema": settings.SCHEMA,
        }
        tensors |= slots
        if self.writer.in_background and processes.rank() == 0:
            tensors = checkpoint.copy_on_cpu(tensors)

        def write() -> None:
            checkpoint.save(folder, step, tensors, facts, f"`vantage resume {folder}`")
            then()

        self.writer.begin(write)
        self.unsaved.restart()

    def must_save(self, epoch: int) -> bool:
        """Whether a checkpoint is written after this many epochs: always after the last epoch and those that are kept,
        after others if one is late, or if writing takes less than 5 s or a tenth of the time. The same on all
        processes."""
        write, since = self.writer.seconds, self.unsaved.seconds
        is_cheap = processes.rank() == 0 and (write < _CHEAP_SECONDS or write <= _SHARE_OF_WRITING * since)
        return epoch == self.run.epochs or is_kept(self.run, epoch) or anywhere(is_cheap or self.is_late)

    @property
    def is_late(self) -> bool:
        """Whether the last checkpoint was written longer ago than `monitoring.checkpoint_minutes`."""
        return self.unsaved.seconds > 60 * self.run.monitoring.checkpoint_minutes

    def restore(self, path: Path) -> tuple[int, float]:
        """Load a checkpoint; returns its step and the seconds trained so far.

        Raises `UserError` if it does not fit, or was written with other settings.
        """
        tensors, facts = checkpoint.load(path)
        with checkpoint.restoring(path):
            self._restore(path, tensors, facts)
            return facts["step"], float(facts["seconds"])

    def _restore(self, path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        refuse_edited(facts, self.run)
        checkpoint.fill(self.learner, below(tensors, "learner."), path)
        checkpoint.fill(self.monitor, {**self.monitor.later(), **below(tensors, "monitor.")}, path)
        if processes.rank():  # what was saved are sums over all processes, which the first keeps
            self.monitor.reset()
        restore_optimizer(self.optimizer.optimizer, tensors, facts["optimizer"])
        if facts["scaler"]:  # none was written at another precision
            self.fabric.strategy.precision.load_state_dict(facts["scaler"])


def check_belongs(path: Path, run: Run, images: int) -> None:
    """Raises `UserError` if a checkpoint does not belong to such a run, before memory is allocated for it."""
    try:
        checkpoint.check_fits(path, lambda: Learner(run.encoders, run.branches, images, run.seed), "learner.")
    except UserError:
        with checkpoint.restoring(path):
            refuse_edited(checkpoint.load(path)[1], run)
        raise


def refuse_edited(facts: dict[str, Any], run: Run) -> None:
    """Raises `UserError` if `settings.json` was edited after a checkpoint with these facts was written."""
    if "run" in facts:
        refuse_conflicts(settings.read_run(facts["run"], facts.get("schema", 1)), run)
