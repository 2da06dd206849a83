"""Try the rungs of the ladder on this machine: how many images each one sees in a time, and which one is worth it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch

from vantage.data import Source, labels_of
from vantage.data.order import steps_in
from vantage.data.splits import hold_out_mask
from vantage.errors import UserError
from vantage.planning.ladder import Rung
from vantage.planning.mirror import is_symmetric, without_flips
from vantage.planning.sizing import PlanOptions, compose, fit_run, least_epochs
from vantage.planning.speed import SHORT_LOOK, Speed
from vantage.planning.squares import SizeLook, decoding_seconds, keep_squares, look_at_sizes
from vantage.planning.suitable_rungs import rungs_for
from vantage.training.images import training_part
from vantage.training.run import Run
from vantage.training.start.try_parts import check_groups

__all__ = [
    "LONGER",
    "MOST_EPOCHS",
    "MeasuredRung",
    "SpeedMeasure",
    "best_rung",
    "fill_time",
    "measure_again",
    "measure_rungs",
]


@runtime_checkable
class SpeedMeasure(Protocol):
    """Returns the speed of a run on some images: `measure_speed`, or a known speed."""

    def __call__(self, run: Run, source: Source, seconds: float = SHORT_LOOK) -> Speed:
        """The speed, from about `seconds` of training steps."""
        ...


LONGER = 10
"""A plan for this many times the minutes is shown beside the one that is trained."""

MOST_EPOCHS = 1_000
"""Largest number of epochs that is planned."""

_AGAIN, _MOST_AGAIN = 0.02, 10.0  # share of the time, and most seconds, for measuring the chosen rung again
_UNUSED = 0.05  # share of the time that whole epochs may leave unused before fewer images are used to fill it
_MARGIN = 0.04  # share of the training time kept in reserve in case the machine slows down
_JUDGED_IMAGES, _JUDGE_SECONDS = 7_000, 4.0  # images encoded by the final evaluation, and its remaining seconds
_JUDGED_STEP = 1 / 3  # time to encode an image, relative to training on it, which adds a backward pass
_HELD_OUT, _MOST_HELD_OUT, _LEAST_HELD_OUT = 0.1, 2_000, 20


@dataclass(frozen=True)
class MeasuredRung:
    """A rung with its measured speed."""

    rung: Rung
    """The network and the view size."""

    recipe_run: Run
    """The recipe at this rung, with the plan's data and hardware settings."""

    run: Run
    """The same run, fitted to the images."""

    images: int
    """Number of images that it trains on."""

    speed: Speed
    """The measured speed."""

    decoding: float = 0.0
    """Seconds per image to decode it into memory, if that is to be counted for another number of images."""

    @property
    def steps(self) -> int:
        """Steps per epoch."""
        return steps_in(self.images, self.run.batch_size)

    def training_seconds(self, seconds: float) -> float:
        """The part of `seconds` that remains for training after time is reserved for the final evaluation."""
        return (seconds - self._judging_seconds()) * (1 - _MARGIN)

    def seconds_for(self, steps: int) -> float:
        """The time for `steps` steps and the final evaluation."""
        training = (self.speed.start + steps * self.speed.step) / (1 - _MARGIN)
        return training + self._judging_seconds()

    def _judging_seconds(self) -> float:
        return _JUDGE_SECONDS + _JUDGED_STEP * min(_JUDGED_IMAGES, self.images) / self.images_per_second

    @property
    def images_per_second(self) -> float:
        """Images per second in training."""
        return self.speed.images_per_second(self.run)

    def epochs(self, seconds: float) -> float:
        """Epochs that fit into `seconds` with the final evaluation: not necessarily whole, and at most 1,000."""
        epoch = self.steps * self.speed.step + self.speed.epoch
        return min(max(0.0, (self.training_seconds(seconds) - self.speed.start) / epoch), float(MOST_EPOCHS))

    def images_for(self, epochs: int, seconds: float, most: int) -> int:
        """How many of at most `most` images fit into `epochs` epochs in `seconds`: whole batches, and at least 8."""
        batch = self.run.batch_size
        steady = (seconds - _JUDGE_SECONDS) * (1 - _MARGIN) - self.speed.start - epochs * self.speed.epoch
        count = steady * self.images_per_second
        each = count / (epochs + _JUDGED_STEP)  # each image is seen once per epoch and once by the evaluation
        if each > _JUDGED_IMAGES:
            each = (count - _JUDGED_STEP * _JUDGED_IMAGES) / epochs
        steps = max(1, math.floor(each / batch))
        return max(min(8, most), min(most, steps * batch))

    def images_seen(self, seconds: float) -> float:
        """Image presentations (images × epochs) that fit into `seconds`, counted as a rung counts them."""
        pairs = max(1.0, len({branch.query for branch in self.run.branches}) / 2)
        return pairs * max(0.0, self.training_seconds(seconds) - self.speed.start) * self.images_per_second


def measure_rungs(
    source: Source, options: PlanOptions, measure: SpeedMeasure, seconds_left: Callable[[], float]
) -> list[MeasuredRung]:
    """Measure rungs, cheapest first, until one is not worthwhile in this time.

    `seconds_left` returns the remaining seconds. Raises `UserError` if the user's settings fit no rung.
    """
    look = look_at_sizes(source)
    mirror = options.keep_recipe or is_symmetric(source)
    share, measured, refusal = _hold_out_share(source), list[MeasuredRung](), UserError("there is no rung")
    for rung in rungs_for(look.side, options):
        # It is no faster than the rung before it, so it would see too few images even in the longer plan.
        if measured and LONGER * measured[-1].images_seen(seconds_left()) < rung.images:
            break
        try:
            recipe_run = _recipe_run(options, rung, share, mirror)
            recipe_run = keep_squares(recipe_run, rung.size, source, look, seconds_left())
            measured.append(_try(rung, recipe_run, source, options, measure, look))
        except UserError as problem:  # a path that the user set may exist on another rung
            refusal = problem
            continue
        except torch.OutOfMemoryError as problem:
            refusal = UserError(f"a step does not fit into the device's memory ({problem}): give a smaller batch")
            break
        if measured[-1].images_seen(seconds_left()) < rung.images:
            break
    if not measured:
        raise refusal
    return measured


def best_rung(measured: list[MeasuredRung], seconds: float) -> MeasuredRung:
    """The last rung that sees as many images as it needs; the first rung if none does."""
    worthwhile = [one for one in measured if one.images_seen(seconds) >= one.rung.images]
    return (worthwhile or measured)[-1 if worthwhile else 0]


def measure_again(rung: MeasuredRung, source: Source, measure: SpeedMeasure, seconds: float) -> MeasuredRung:
    """Measure the chosen rung for longer if the remaining seconds allow it: a step in the first two seconds can be a
    tenth slower than in the minutes that follow."""
    window = min(_MOST_AGAIN, _AGAIN * seconds)
    if window <= SHORT_LOOK:
        return rung
    return replace(rung, speed=measure(rung.run, training_part(source, rung.recipe_run.data), window))


def fill_time(
    rung: MeasuredRung, source: Source, options: PlanOptions, measure: SpeedMeasure, seconds_left: Callable[[], float]
) -> tuple[MeasuredRung, int]:
    """The rung and the whole number of epochs that fill the remaining seconds, on fewer images if necessary.

    If the time is too short for several epochs of all images (`least_epochs`), the plan uses as many images as can be
    seen that often. If whole epochs would leave more than a twentieth of the time unused, it adds an epoch and drops a
    few images.
    """
    possible, least = rung.epochs(seconds_left()), least_epochs(rung.run)
    enough = (1 - _UNUSED) * possible if not rung.decoding else least  # fewer images would have to be decoded anew
    if possible >= least and math.floor(possible) >= enough:
        return rung, math.floor(possible)
    epochs = max(least, math.ceil(possible))
    fewer = _on(rung.images_for(epochs, seconds_left(), rung.images), rung, options)
    if not _costs_alike(fewer, rung):
        fewer = replace(fewer, speed=measure(fewer.run, training_part(source, fewer.recipe_run.data)))
        fewer = _on(fewer.images_for(epochs, seconds_left(), rung.images), fewer, options)
    within = 1 + _MARGIN / 2  # some time has passed since
    return fewer, min(epochs, math.floor(within * fewer.epochs(seconds_left())))


def _on(images: int, rung: MeasuredRung, options: PlanOptions) -> MeasuredRung:
    """The rung on another number of images, at the measured speed."""
    recipe_run = replace(rung.recipe_run, data=replace(rung.recipe_run.data, max_images=images))
    run = fit_run(options, recipe_run, images, 100)
    step, start = rung.speed.step * run.batch_size / rung.run.batch_size, rung.speed.start + rung.decoding * images
    speed = replace(rung.speed, step=step, start=start)
    return replace(rung, recipe_run=recipe_run, run=run, images=images, speed=speed)


def _costs_alike(one: MeasuredRung, other: MeasuredRung) -> bool:
    """Whether steps and epoch ends cost the same in both: batch size and branches are equal."""
    return one.run.batch_size == other.run.batch_size and one.run.branches == other.run.branches


def _try(
    rung: Rung, recipe_run: Run, source: Source, options: PlanOptions, measure: SpeedMeasure, look: SizeLook
) -> MeasuredRung:
    part = training_part(source, recipe_run.data)
    run = fit_run(options, recipe_run, len(part), 100)
    check_groups(run)  # the speed is that of one process, which may have shares that several cannot have
    decoding = decoding_seconds(run.data, 1, look) if run.data.resident_side else 0.0
    return MeasuredRung(rung, recipe_run, run, len(part), measure(run, part), decoding)


def _recipe_run(options: PlanOptions, rung: Rung, share: float, mirror: bool) -> Run:
    run = compose(options, rung)
    run = run if mirror else without_flips(run)
    if "data.hold_out" in options.changes(run) or run.data.hold_out:
        return run
    return replace(run, data=replace(run.data, hold_out=share))


def _hold_out_share(source: Source) -> float:
    """The share of labeled images to hold out: a tenth, at most about 2,000 images; 0 if there are too few labels."""
    label = labels_of(source)
    label = label[label >= 0]
    share = min(_HELD_OUT, _MOST_HELD_OUT / max(1, len(label)))
    if len(label.unique()) < 2:
        return 0.0
    try:
        return share if int(hold_out_mask(label, share, 0).sum()) >= _LEAST_HELD_OUT else 0.0
    except UserError:  # every class has one image
        return 0.0
