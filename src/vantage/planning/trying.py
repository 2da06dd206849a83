"""Rungs of the ladder, tried on this machine: what each reaches in a time, and which is worth it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch

from vantage.data import Source, labels_of
from vantage.data.order import steps_in
from vantage.data.splits import hold_out_mask
from vantage.errors import UserError
from vantage.planning.ladder import Rung, rungs, suited_size
from vantage.planning.sizing import Wishes, composed, least_epochs, sized
from vantage.planning.speed import SHORT_LOOK, Speed
from vantage.training.feed import training_part, usual_size
from vantage.training.run import Run

__all__ = ["LONGER", "MOST_EPOCHS", "SpeedMeasure", "Tried", "climb", "filled", "measured_again", "worth_it"]


@runtime_checkable
class SpeedMeasure(Protocol):
    """Gives the speed of a run on some images: `measured`, or a known one."""

    def __call__(self, run: Run, source: Source, seconds: float = SHORT_LOOK) -> Speed:
        """The speed, from training steps that take about `seconds`."""
        ...


LONGER = 10
"""A second plan, for this many times the minutes, is shown beside the one that is trained."""

MOST_EPOCHS = 1_000
"""Epochs of the longest plan."""

_AGAIN, _MOST_AGAIN = 0.02, 20.0  # share of the time, and seconds, in which the rung that is taken is measured again
_UNUSED = 0.05  # share of the time that a whole number of epochs may leave before it is filled with fewer images
_MARGIN = 0.04  # of the time for training, against a machine that becomes slower
_JUDGED, _JUDGE_SECONDS = 7_000, 4.0  # images that are encoded when the run ends, and seconds beside that
_JUDGED_STEP = 1 / 3  # time of one of them, relative to its share of a step, which also goes backward
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
        return _JUDGE_SECONDS + _JUDGED_STEP * min(_JUDGED, self.images) / self._rate()

    def _rate(self) -> float:
        """Images a second in training."""
        return self.run.batch_size / self.speed.step

    def epochs(self, seconds: float) -> float:
        """Epochs that a time allows, judging included: not a whole number, and at most 1,000."""
        epoch = self.steps * self.speed.step + self.speed.epoch
        return min(max(0.0, (self.training(seconds) - self.speed.start) / epoch), float(MOST_EPOCHS))

    def images_for(self, epochs: int, seconds: float, most: int) -> int:
        """Images of at most so many that can be seen in some epochs of a time: whole batches, and at least 8."""
        batch = self.run.batch_size
        steady = (seconds - _JUDGE_SECONDS) * (1 - _MARGIN) - self.speed.start - epochs * self.speed.epoch
        count = steady * self._rate()
        each = count / (epochs + _JUDGED_STEP)  # seen in every epoch, and once more to be judged by
        if each > _JUDGED:
            each = (count - _JUDGED_STEP * _JUDGED) / epochs
        steps = max(1, math.floor(each / batch))
        return max(min(8, most), min(most, steps * batch))

    def seen(self, seconds: float) -> float:
        """Images that are seen in a time, counted each time."""
        return max(0.0, self.training(seconds) - self.speed.start) * self._rate()


def climb(source: Source, wishes: Wishes, measure: SpeedMeasure, left: Callable[[], float]) -> list[Tried]:
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
        if tried and LONGER * tried[-1].seen(left()) < rung.images:  # a dearer rung is no faster than this one
            break
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


def measured_again(tried: Tried, source: Source, measure: SpeedMeasure, seconds: float) -> Tried:
    """The rung that is taken, by a longer look where the seconds that are left allow one: a step of the first two
    seconds may be a tenth slower than those of the minutes that follow."""
    window = min(_MOST_AGAIN, _AGAIN * seconds)
    if window <= SHORT_LOOK:
        return tried
    return replace(tried, speed=measure(tried.run, training_part(source, tried.unfitted.data), window))


def filled(
    tried: Tried, source: Source, wishes: Wishes, measure: SpeedMeasure, left: Callable[[], float]
) -> tuple[Tried, int]:
    """A rung and the whole number of epochs that fill the seconds that are left, on fewer images where need be.

    Where the time does not suffice for several epochs of all images (`least_epochs`), the images are as many as can be
    seen so often; where whole epochs would leave more than a twentieth of it, one more epoch is planned on a few images
    less.
    """
    possible, least = tried.epochs(left()), least_epochs(tried.run)
    if possible >= least and math.floor(possible) >= (1 - _UNUSED) * possible:
        return tried, math.floor(possible)
    epochs = max(least, math.ceil(possible))
    fewer = _on(tried.images_for(epochs, left(), tried.images), tried, wishes)
    if not _costs_alike(fewer, tried):
        fewer = replace(fewer, speed=measure(fewer.run, training_part(source, fewer.unfitted.data)))
        fewer = _on(fewer.images_for(epochs, left(), tried.images), fewer, wishes)
    within = 1 + _MARGIN / 2  # the clock has gone on since
    return fewer, min(epochs, math.floor(within * fewer.epochs(left())))


def _on(images: int, tried: Tried, wishes: Wishes) -> Tried:
    """The rung on another number of images, at the speed that was measured."""
    unfitted = replace(tried.unfitted, data=replace(tried.unfitted.data, max_images=images))
    run = sized(wishes, unfitted, images, 100)
    speed = replace(tried.speed, step=tried.speed.step * run.batch_size / tried.run.batch_size)
    return replace(tried, unfitted=unfitted, run=run, images=images, speed=speed)


def _costs_alike(one: Tried, other: Tried) -> bool:
    """Whether a step and the end of an epoch take as long: the batch and what is remembered are the same."""
    return one.run.batch_size == other.run.batch_size and one.run.branches == other.run.branches


def _try(rung: Rung, unfitted: Run, source: Source, wishes: Wishes, measure: SpeedMeasure) -> Tried:
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
        return share if int(hold_out_mask(label, share, 0).sum()) >= _LEAST_HELD_OUT else 0.0
    except UserError:  # every class has one image
        return 0.0


def _on_gpu(wishes: Wishes, size: int) -> bool:
    """Whether the run will be on a GPU: where there is one, unless the user set the CPU."""
    run = wishes.recipe(size)
    accelerator = wishes.changes(run).get("hardware.accelerator", run.hardware.accelerator)
    return accelerator != "cpu" and torch.cuda.is_available()
