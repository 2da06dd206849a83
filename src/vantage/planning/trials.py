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
from vantage.planning.ladder import Rung, rungs, suitable_size
from vantage.planning.sizing import PlanOptions, compose, fit_run, least_epochs
from vantage.planning.speed import SHORT_LOOK, Speed
from vantage.training.feed import training_part, usual_size
from vantage.training.run import Run

__all__ = ["LONGER", "MOST_EPOCHS", "SpeedMeasure", "Trial", "climb", "fill_time", "measured_again", "best_trial"]


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
_JUDGED_IMAGES, _JUDGE_SECONDS = 7_000, 4.0  # images that are encoded when the run ends, and seconds beside that
_JUDGED_STEP = 1 / 3  # time of one of them, relative to its share of a step, which also goes backward
_HELD_OUT, _MOST_HELD_OUT, _LEAST_HELD_OUT = 0.1, 2_000, 20


@dataclass(frozen=True)
class Trial:
    """A rung that was measured."""

    rung: Rung
    """The network and the size of views."""

    recipe_run: Run
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

    def training_seconds(self, seconds: float) -> float:
        """What is left of a time for training, so that the result can be judged at its end."""
        return (seconds - self._judging_seconds()) * (1 - _MARGIN)

    def seconds_for(self, steps: int) -> float:
        """The time that some steps need, judging included."""
        training = (self.speed.start + steps * self.speed.step) / (1 - _MARGIN)
        return training + self._judging_seconds()

    def _judging_seconds(self) -> float:
        return _JUDGE_SECONDS + _JUDGED_STEP * min(_JUDGED_IMAGES, self.images) / self._rate()

    def _rate(self) -> float:
        """Images a second in training."""
        return self.run.batch_size / self.speed.step

    def epochs(self, seconds: float) -> float:
        """Epochs that a time allows, judging included: not a whole number, and at most 1,000."""
        epoch = self.steps * self.speed.step + self.speed.epoch
        return min(max(0.0, (self.training_seconds(seconds) - self.speed.start) / epoch), float(MOST_EPOCHS))

    def images_for(self, epochs: int, seconds: float, most: int) -> int:
        """Images of at most so many that can be seen in some epochs of a time: whole batches, and at least 8."""
        batch = self.run.batch_size
        steady = (seconds - _JUDGE_SECONDS) * (1 - _MARGIN) - self.speed.start - epochs * self.speed.epoch
        count = steady * self._rate()
        each = count / (epochs + _JUDGED_STEP)  # seen in every epoch, and once more to be judged by
        if each > _JUDGED_IMAGES:
            each = (count - _JUDGED_STEP * _JUDGED_IMAGES) / epochs
        steps = max(1, math.floor(each / batch))
        return max(min(8, most), min(most, steps * batch))

    def images_seen(self, seconds: float) -> float:
        """Images that are seen in a time, counted each time."""
        return max(0.0, self.training_seconds(seconds) - self.speed.start) * self._rate()


def climb(
    source: Source, options: PlanOptions, measure: SpeedMeasure, seconds_left: Callable[[], float]
) -> list[Trial]:
    """The rungs that were measured, the cheapest first, up to one that the time does not make worth it.

    `left` gives the seconds that are left. Raises `UserError` where no rung takes what the user set.
    """
    side, _ = usual_size(source)
    ladder = rungs(
        side,
        _on_gpu(options, suitable_size(side) if options.size is None else options.size),
        options.size,
        options.keep_network,
    )
    share, trials, refusal = _hold_out_share(source), list[Trial](), UserError("there is no rung")
    for rung in ladder:
        if (
            trials and LONGER * trials[-1].images_seen(seconds_left()) < rung.images
        ):  # a dearer rung is no faster than this one
            break
        try:
            trials.append(_try(rung, _recipe_run(options, rung, share), source, options, measure))
        except UserError as problem:  # a path that was set may be there on another rung
            refusal = problem
            continue
        except torch.OutOfMemoryError as problem:
            refusal = UserError(f"a step does not fit into the device's memory ({problem}): give a smaller batch")
            break
        if trials[-1].images_seen(seconds_left()) < rung.images:
            break
    if not trials:
        raise refusal
    return trials


def best_trial(trials: list[Trial], seconds: float) -> Trial:
    """The last of the rungs that reaches the images that it needs; the first where none does."""
    worthwhile = [one for one in trials if one.images_seen(seconds) >= one.rung.images]
    return (worthwhile or trials)[-1 if worthwhile else 0]


def measured_again(tried: Trial, source: Source, measure: SpeedMeasure, seconds: float) -> Trial:
    """The rung that is taken, by a longer look where the seconds that are left allow one: a step of the first two
    seconds may be a tenth slower than those of the minutes that follow."""
    window = min(_MOST_AGAIN, _AGAIN * seconds)
    if window <= SHORT_LOOK:
        return tried
    return replace(tried, speed=measure(tried.run, training_part(source, tried.recipe_run.data), window))


def fill_time(
    trial: Trial, source: Source, options: PlanOptions, measure: SpeedMeasure, seconds_left: Callable[[], float]
) -> tuple[Trial, int]:
    """A rung and the whole number of epochs that fill the seconds that are left, on fewer images where need be.

    Where the time does not suffice for several epochs of all images (`least_epochs`), the images are as many as can be
    seen so often; where whole epochs would leave more than a twentieth of it, one more epoch is planned on a few images
    less.
    """
    possible, least = trial.epochs(seconds_left()), least_epochs(trial.run)
    if possible >= least and math.floor(possible) >= (1 - _UNUSED) * possible:
        return trial, math.floor(possible)
    epochs = max(least, math.ceil(possible))
    fewer = _on(trial.images_for(epochs, seconds_left(), trial.images), trial, options)
    if not _costs_alike(fewer, trial):
        fewer = replace(fewer, speed=measure(fewer.run, training_part(source, fewer.recipe_run.data)))
        fewer = _on(fewer.images_for(epochs, seconds_left(), trial.images), fewer, options)
    within = 1 + _MARGIN / 2  # the clock has gone on since
    return fewer, min(epochs, math.floor(within * fewer.epochs(seconds_left())))


def _on(images: int, trial: Trial, options: PlanOptions) -> Trial:
    """The rung on another number of images, at the speed that was measured."""
    recipe_run = replace(trial.recipe_run, data=replace(trial.recipe_run.data, max_images=images))
    run = fit_run(options, recipe_run, images, 100)
    speed = replace(trial.speed, step=trial.speed.step * run.batch_size / trial.run.batch_size)
    return replace(trial, recipe_run=recipe_run, run=run, images=images, speed=speed)


def _costs_alike(one: Trial, other: Trial) -> bool:
    """Whether a step and the end of an epoch take as long: the batch and what is remembered are the same."""
    return one.run.batch_size == other.run.batch_size and one.run.branches == other.run.branches


def _try(rung: Rung, recipe_run: Run, source: Source, options: PlanOptions, measure: SpeedMeasure) -> Trial:
    part = training_part(source, recipe_run.data)
    run = fit_run(options, recipe_run, len(part), 100)
    return Trial(rung, recipe_run, run, len(part), measure(run, part))


def _recipe_run(options: PlanOptions, rung: Rung, share: float) -> Run:
    run = compose(options, rung)
    if "data.hold_out" in options.changes(run) or run.data.hold_out:
        return run
    return replace(run, data=replace(run.data, hold_out=share))


def _hold_out_share(source: Source) -> float:
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


def _on_gpu(options: PlanOptions, size: int) -> bool:
    """Whether the run will be on a GPU: where there is one, unless the user set the CPU."""
    run = options.recipe(size)
    accelerator = options.changes(run).get("hardware.accelerator", run.hardware.accelerator)
    return accelerator != "cpu" and torch.cuda.is_available()
