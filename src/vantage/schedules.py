"""Numbers that follow the step, and learning rates that follow the epochs.

A `Schedule` maps the step (optimizer steps taken so far, from 0) to a number: a weight, a temperature, a percentile. A
`RateSchedule` gives the learning rate of a step; it is told how long an epoch and the run are, so that one recipe
holds for a data set of any size. Both are frozen values without state: resuming at step s needs nothing but s.
"""

import itertools
import math
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from vantage.errors import UserError


@runtime_checkable
class Schedule(Protocol):
    """A number that follows the step."""

    def __call__(self, step: int) -> float:
        """The value at `step`, counted from 0."""
        ...


@runtime_checkable
class RateSchedule(Protocol):
    """A learning rate that follows the step, in terms of epochs."""

    def __call__(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """The learning rate of `step` (from 0) in a run of `epochs` epochs of `steps_per_epoch` optimizer steps."""
        ...

    def scaled(self, factor: float) -> "RateSchedule":
        """The same course at `factor` times the rate, as when the batch grows by it."""
        ...

    def stretched(self, epochs: int, to: int) -> "RateSchedule":
        """The same course for a run of `to` epochs in place of `epochs`: what happens at an epoch moves in proportion."""
        ...


@dataclass(frozen=True)
class Constant:
    """The same number at every step."""

    value: float
    """The number."""

    def __post_init__(self) -> None:
        _finite(self, "value")

    def __call__(self, step: int) -> float:
        """`value`, whatever the step."""
        return self.value


@dataclass(frozen=True)
class Linear:
    """A straight line: start + (end − start) · min(step, steps) / steps, then `end` for ever."""

    start: float
    """Value at step 0."""
    end: float
    """Value from step `steps` on."""
    steps: int
    """Length of the line, in steps."""

    def __post_init__(self) -> None:
        _finite(self, "start", "end")
        _at_least(self, 1, "steps")

    def __call__(self, step: int) -> float:
        """The value on the line at `step`."""
        return _between(self.start, self.end, min(step, self.steps) / self.steps)


@dataclass(frozen=True)
class Cosine:
    """Half a cosine: end + (start − end) · ½(1 + cos(π · min(step, steps) / steps)), then `end` for ever."""

    start: float
    """Value at step 0."""
    end: float
    """Value from step `steps` on."""
    steps: int
    """Length of the descent (or climb), in steps."""

    def __post_init__(self) -> None:
        _finite(self, "start", "end")
        _at_least(self, 1, "steps")

    def __call__(self, step: int) -> float:
        """The value on the curve at `step`."""
        return _half_cosine(self.start, self.end, min(step, self.steps) / self.steps)


@dataclass(frozen=True)
class Steps:
    """Jumps: value · factor^(how many of `at` are ≤ step)."""

    value: float
    """Value at step 0, before the first jump."""
    factor: float
    """What each jump multiplies by."""
    at: tuple[int, ...]
    """The steps of the jumps, growing; a jump holds from that very step on."""

    def __post_init__(self) -> None:
        _finite(self, "value", "factor")
        _growing(self, "at")

    def __call__(self, step: int) -> float:
        """The value after the jumps up to and including `step`."""
        return self.value * self.factor ** sum(jump <= step for jump in self.at)


@dataclass(frozen=True)
class Exponential:
    """Exponential approach: end + (start − end) · exp(−rate · step).

    Ring's annealing (arXiv 2010.02037, released code) is `Exponential(1.0, 0.1, rate=0.1)` per step, which has gone
    99 % of the way after 47 steps; per epoch, which was likely meant, the rate is 0.1 / steps of an epoch.
    """

    start: float
    """Value at step 0."""
    end: float
    """Value that is approached and never quite reached."""
    rate: float
    """Decay per step, above 0; the distance to `end` halves every 0.693 / rate steps."""

    def __post_init__(self) -> None:
        _finite(self, "start", "end", "rate")
        _require(self, "rate", self.rate, self.rate > 0, "be above 0; for no decay use Constant")

    def __call__(self, step: int) -> float:
        """The value at `step`."""
        return self.end + (self.start - self.end) * math.exp(-self.rate * step)


@dataclass(frozen=True)
class CosineByEpoch:
    """Learning rate on half a cosine that moves once an epoch, as MoCo v2 trains (arXiv 2003.04297).

    With n steps an epoch, E epochs and w warm-up epochs, at step s of epoch e = ⌊s / n⌋:

        warm-up (e < w):  peak · (s + 1) / (w · n)
        then:             final + (peak − final) · ½(1 + cos(π (e − w) / (E − w)))

    MoCo's own schedule is w = 0 and final = 0: its last epoch still trains, at e = E − 1. Warm-up moves every step and
    its last step is at `peak`; step 0 is above 0, so that no step is spent at rate nought.
    """

    peak: float
    """Highest learning rate, as handed to the optimizer (already scaled to the batch)."""
    final: float = 0.0
    """Learning rate that the curve reaches at the end of the last epoch."""
    warmup_epochs: int = 0
    """Epochs of linear warm-up."""

    def scaled(self, factor: float) -> "CosineByEpoch":
        """The same course at `factor` times the rate."""
        return replace(self, peak=self.peak * factor, final=self.final * factor)

    def stretched(self, epochs: int, to: int) -> "CosineByEpoch":
        """The same course for `to` epochs in place of `epochs`."""
        return replace(self, warmup_epochs=_moved(self.warmup_epochs, epochs, to))

    def __post_init__(self) -> None:
        _at_least(self, 0, "peak", "final", "warmup_epochs")

    def __call__(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """The learning rate of `step`; raises `UserError` where the warm-up fills the whole run."""
        _run(self, step, steps_per_epoch, epochs, self.warmup_epochs)
        if step < self.warmup_epochs * steps_per_epoch:
            return _warmup(self.peak, step, self.warmup_epochs * steps_per_epoch)
        done = min(step // steps_per_epoch - self.warmup_epochs, epochs - self.warmup_epochs)
        return _half_cosine(self.peak, self.final, done / (epochs - self.warmup_epochs))


@dataclass(frozen=True)
class CosineByStep:
    """Learning rate on half a cosine that moves every step, as SimCLR trains (arXiv 2002.05709).

    With n steps an epoch, E epochs and w warm-up epochs, at step s:

        warm-up (s < w n):  peak · (s + 1) / (w · n)
        then:               final + (peak − final) · ½(1 + cos(π (s − w n) / (E n − w n)))

    SimCLR's release warms up by s / (w n), one step later: its first step has rate 0.
    """

    peak: float
    """Highest learning rate, as handed to the optimizer (already scaled to the batch)."""
    final: float = 0.0
    """Learning rate that the curve reaches after the last step."""
    warmup_epochs: int = 0
    """Epochs of linear warm-up."""

    def scaled(self, factor: float) -> "CosineByStep":
        """The same course at `factor` times the rate."""
        return replace(self, peak=self.peak * factor, final=self.final * factor)

    def stretched(self, epochs: int, to: int) -> "CosineByStep":
        """The same course for `to` epochs in place of `epochs`."""
        return replace(self, warmup_epochs=_moved(self.warmup_epochs, epochs, to))

    def __post_init__(self) -> None:
        _at_least(self, 0, "peak", "final", "warmup_epochs")

    def __call__(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """The learning rate of `step`; raises `UserError` where the warm-up fills the whole run."""
        _run(self, step, steps_per_epoch, epochs, self.warmup_epochs)
        warmup = self.warmup_epochs * steps_per_epoch
        if step < warmup:
            return _warmup(self.peak, step, warmup)
        length = epochs * steps_per_epoch - warmup
        return _half_cosine(self.peak, self.final, min(step - warmup, length) / length)


@dataclass(frozen=True)
class StepDecay:
    """Learning rate that drops at given epochs, as instance discrimination and MoCo v1 train.

    With n steps an epoch and w warm-up epochs, at step s of epoch e = ⌊s / n⌋:

        warm-up (e < w):  peak · (s + 1) / (w · n)
        then:             peak · factor^(how many of `at_epochs` are ≤ e)

    Without `at_epochs` this is a constant rate. Drops beyond the last epoch never come: a shorter run needs its own.
    """

    peak: float
    """Highest learning rate, as handed to the optimizer (already scaled to the batch)."""
    factor: float = 0.1
    """What each drop multiplies by."""
    at_epochs: tuple[int, ...] = (120, 160)
    """The epochs (from 0) at whose first step the rate drops, growing."""
    warmup_epochs: int = 0
    """Epochs of linear warm-up; no drop may come before its end."""

    def scaled(self, factor: float) -> "StepDecay":
        """The same course at `factor` times the rate."""
        return replace(self, peak=self.peak * factor)

    def stretched(self, epochs: int, to: int) -> "StepDecay":
        """The same course for `to` epochs in place of `epochs`; drops that would fall on one epoch follow each other."""
        drops: list[int] = []
        for drop in self.at_epochs:
            drops.append(max(_moved(drop, epochs, to), drops[-1] + 1 if drops else 0))
        return replace(self, at_epochs=tuple(drops), warmup_epochs=_moved(self.warmup_epochs, epochs, to))

    def __post_init__(self) -> None:
        _at_least(self, 0, "peak", "factor", "warmup_epochs")
        _growing(self, "at_epochs")
        late = all(drop >= self.warmup_epochs for drop in self.at_epochs)
        _require(self, "at_epochs", self.at_epochs, late, f"come after the {self.warmup_epochs} epochs of warm-up")

    def __call__(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """The learning rate of `step`; raises `UserError` where the warm-up fills the whole run."""
        _run(self, step, steps_per_epoch, epochs, self.warmup_epochs)
        if step < self.warmup_epochs * steps_per_epoch:
            return _warmup(self.peak, step, self.warmup_epochs * steps_per_epoch)
        return self.peak * self.factor ** sum(drop <= step // steps_per_epoch for drop in self.at_epochs)


def _moved(epoch: int, epochs: int, to: int) -> int:
    return min(round(epoch * to / epochs), to - 1)


def _between(start: float, end: float, part: float) -> float:
    # Weighted by both ends, so that part 0 and part 1 give them exactly.
    return start * (1 - part) + end * part


def _half_cosine(start: float, end: float, part: float) -> float:
    return _between(end, start, 0.5 * (1 + math.cos(math.pi * part)))


def _warmup(peak: float, step: int, steps: int) -> float:
    return peak * (step + 1) / steps


def _run(schedule: object, step: int, steps_per_epoch: int, epochs: int, warmup_epochs: int) -> None:
    _require(schedule, "step", step, step >= 0, "be 0 or more")
    _require(
        schedule,
        "steps_per_epoch",
        steps_per_epoch,
        steps_per_epoch >= 1,
        "be 1 or more: is a batch larger than the set?",
    )
    _require(schedule, "epochs", epochs, epochs >= 1, "be 1 or more")
    fits = warmup_epochs == 0 or warmup_epochs < epochs
    _require(schedule, "warmup_epochs", warmup_epochs, fits, f"be less than the {epochs} epochs of the run")


def _require(schedule: object, field: str, value: object, holds: bool, must: str) -> None:
    if not holds:
        raise UserError(f"{type(schedule).__name__}: {field} is {value}; it must {must}")


def _finite(schedule: object, *fields: str) -> None:
    for field in fields:
        value = getattr(schedule, field)
        _require(schedule, field, value, math.isfinite(value), "be a finite number")


def _at_least(schedule: object, least: int, *fields: str) -> None:
    for field in fields:
        value = getattr(schedule, field)
        _require(schedule, field, value, math.isfinite(value) and value >= least, f"be {least} or more, and finite")


def _growing(schedule: object, field: str) -> None:
    jumps = getattr(schedule, field)
    holds = all(jump >= 0 for jump in jumps) and all(a < b for a, b in itertools.pairwise(jumps))
    _require(schedule, field, jumps, holds, "grow, and start at 0 or later")
