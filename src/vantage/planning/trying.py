"""Rungs of the ladder, tried on this machine: what each reaches in a time, and which is worth it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from vantage.data import Source, labels_of
from vantage.data.order import steps_in
from vantage.data.splits import held_out
from vantage.errors import UserError
from vantage.planning.ladder import Rung, rungs, suited_size
from vantage.planning.sizing import Wishes, composed, least_epochs, sized
from vantage.planning.speed import Speed
from vantage.training.feed import training_part, usual_size
from vantage.training.run import Run

__all__ = ["Measure", "Tried", "climb", "fewer_images", "worth_it"]

Measure = Callable[[Run, Source], Speed]
"""Gives the speed of a run on some images: `measured`, or a known one."""

_MARGIN = 0.04  # of the time for training, against a machine that becomes slower
_JUDGED, _JUDGE_SECONDS = 7_000, 4.0  # images that are encoded when the run ends, and seconds beside that
_HELD_OUT, _MOST_HELD_OUT, _LEAST_HELD_OUT = 0.1, 2_000, 20


@dataclass(frozen=True)
class Tried:
    """A rung that was measured."""

    rung: Rung
    """The network and the size of views."""

    unfitted: Run
    """The recipe at this rung, with the data and hardware of the plan."""

    run: Run
    """The same, fitted to the images."""

    images: int
    """Images that it trains on."""

    speed: Speed
    """What was measured."""

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return steps_in(self.images, self.run.batch_size)

    def training(self, seconds: float) -> float:
        """What is left of a time for training, so that the result can be judged at its end."""
        return (seconds - self._judging()) * (1 - _MARGIN)

    def needed(self, steps: int) -> float:
        """The time that some steps need, judging included."""
        training = (self.speed.start + steps * self.speed.step) / (1 - _MARGIN)
        return training + self._judging()

    def _judging(self) -> float:
        return _JUDGE_SECONDS + min(_JUDGED, self.images) * self.speed.step / self.run.batch_size

    def epochs(self, seconds: float) -> int:
        """Epochs that a time allows, judging included."""
        epoch = self.steps * self.speed.step + self.speed.epoch
        return max(0, math.floor((self.training(seconds) - self.speed.start) / epoch))

    def seen(self, seconds: float) -> float:
        """Images that are seen in a time, counted each time."""
        return max(0.0, self.training(seconds) - self.speed.start) / self.speed.step * self.run.batch_size


def climb(source: Source, wishes: Wishes, measure: Measure, left: Callable[[], float]) -> list[Tried]:
    """The rungs that were measured, the cheapest first, up to one that the time does not make worth it.

    `left` gives the seconds that are left. Raises `UserError` where no rung takes what the user set.
    """
    side, _ = usual_size(source)
    ladder = rungs(
        side,
        _on_gpu(wishes, suited_size(side) if wishes.size is None else wishes.size),
        wishes.size,
        wishes.own_network,
    )
    share, tried, refusal = _held_share(source), list[Tried](), UserError("there is no rung")
    for rung in ladder:
        try:
            tried.append(_try(rung, _unfitted(wishes, rung, share), source, wishes, measure))
        except UserError as problem:  # a path that was set may be there on another rung
            refusal = problem
            continue
        except torch.OutOfMemoryError as problem:
            refusal = UserError(f"a step does not fit into the device's memory ({problem}): give a smaller batch")
            break
        if tried[-1].seen(left()) < rung.images:
            break
    if not tried:
        raise refusal
    return tried


def worth_it(tried: list[Tried], seconds: float) -> Tried:
    """The last of the rungs that reaches the images that it needs; the first where none does."""
    reached = [one for one in tried if one.seen(seconds) >= one.rung.images]
    return (reached or tried)[-1 if reached else 0]


def fewer_images(tried: Tried, source: Source, wishes: Wishes, measure: Measure, seconds: float) -> Tried:
    """The rung on so many of the images that each can be seen in several epochs; on all of them where they can."""
    epochs = least_epochs(tried.run)
    if tried.epochs(seconds) >= epochs:
        return tried
    epoch = (tried.training(seconds) - tried.speed.start) / epochs
    steps = max(1, math.floor((epoch - tried.speed.epoch) / tried.speed.step))
    images = max(min(8, tried.images), min(tried.images, steps * tried.run.batch_size))
    unfitted = replace(tried.unfitted, data=replace(tried.unfitted.data, max_images=images))
    return _try(tried.rung, unfitted, source, wishes, measure)


def _try(rung: Rung, unfitted: Run, source: Source, wishes: Wishes, measure: Measure) -> Tried:
    part = training_part(source, unfitted.data)
    run = sized(wishes, unfitted, len(part), 100)
    return Tried(rung, unfitted, run, len(part), measure(run, part))


def _unfitted(wishes: Wishes, rung: Rung, share: float) -> Run:
    run = composed(wishes, rung)
    if "data.hold_out" in wishes.changes(run) or run.data.hold_out:
        return run
    return replace(run, data=replace(run.data, hold_out=share))


def _held_share(source: Source) -> float:
    """The share of labeled images to judge by: a tenth, at most some 2,000; none where labels are too few."""
    label = labels_of(source)
    label = label[label >= 0]
    share = min(_HELD_OUT, _MOST_HELD_OUT / max(1, len(label)))
    if len(label.unique()) < 2:
        return 0.0
    try:
        return share if int(held_out(label, share, 0).sum()) >= _LEAST_HELD_OUT else 0.0
    except UserError:  # every class has one image
        return 0.0


def _on_gpu(wishes: Wishes, size: int) -> bool:
    """Whether the run will be on a GPU: where there is one, unless the user set the CPU."""
    run = wishes.recipe(size)
    accelerator = wishes.changes(run).get("hardware.accelerator", run.hardware.accelerator)
    return accelerator != "cpu" and torch.cuda.is_available()
