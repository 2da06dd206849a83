"""Numbers that follow the epochs: any schedule, counted in epochs instead of steps.

`Run.fit` sets how many steps an epoch has, and `Run.rescale` stretches these schedules with the run. One that is put
into a run later gets the number when training begins, if it still has ImageNet's.
"""

from dataclasses import dataclass, replace
from typing import Any

from vantage.composition.fitting import everywhere
from vantage.schedules.checks import at_least, between, finite, require
from vantage.schedules.numbers import Schedule

__all__ = ["BetweenEpochs", "ByEpoch", "RampByEpoch", "with_steps_per_epoch"]

_IMAGENET_STEPS = 5_004


@dataclass(frozen=True)
class _Epochs:
    """What both share: how long an epoch is."""

    course: Schedule
    """The schedule, whose steps stand for epochs."""

    every: float = 1.0
    """How many epochs one step of the course stands for."""

    steps_per_epoch: int = _IMAGENET_STEPS
    """Optimizer steps of an epoch; 5,004, for ImageNet at batch size 256, until `Run.fit` or `train` sets it."""

    def __post_init__(self) -> None:
        require(self, "every", self.every, self.every > 0, "be above 0")
        require(self, "steps_per_epoch", self.steps_per_epoch, self.steps_per_epoch >= 1, "be 1 or more")

    def place(self, step: int) -> tuple[int, float]:
        """The step of the course, and the fraction of the way to the next one."""
        position = step / (self.every * self.steps_per_epoch)
        whole = int(position + 1e-9)  # so that rounding does not fall short of an epoch that begins
        return whole, max(0.0, position - whole)

    def fit_to(self, images: int, batch_size: int) -> "_Epochs":
        """The same course, in epochs of `images` images."""
        return replace(self, steps_per_epoch=max(1, images // batch_size))

    def stretch(self, longer: float, finer: float) -> "_Epochs":
        """The same course for `longer` times as many epochs, with `finer` times as many steps in each."""
        return replace(self, every=self.every * longer, steps_per_epoch=max(1, round(self.steps_per_epoch * finer)))


@dataclass(frozen=True)
class ByEpoch(_Epochs):
    """A course that moves once per epoch, or once every `every` epochs: course(⌊epoch / every⌋).

    Ring's levels, ten of equal length over 100 epochs, are ByEpoch(Linear(1.0, 0.1, 9), every=10.0).

    >>> from vantage.schedules import Linear
    >>> levels = ByEpoch(Linear(1.0, 0.1, 9), every=10.0, steps_per_epoch=2)
    >>> [round(levels(step), 3) for step in (0, 19, 20, 179, 180, 900)]
    [1.0, 1.0, 0.9, 0.2, 0.1, 0.1]
    """

    def __call__(self, step: int) -> float:
        """The value of the epoch that `step` is in."""
        return self.course(self.place(step)[0])


@dataclass(frozen=True)
class BetweenEpochs(_Epochs):
    """A course that moves at every step, on straight lines between its values at whole epochs.

    Ring's annealing, from all keys to a tenth over 100 epochs, is BetweenEpochs(Linear(1.0, 0.1, 100)).

    >>> from vantage.schedules import Linear
    >>> line = BetweenEpochs(Linear(1.0, 0.1, 100), steps_per_epoch=4)
    >>> [round(line(step), 5) for step in (0, 2, 4, 400, 900)]
    [1.0, 0.9955, 0.991, 0.1, 0.1]
    """

    def __call__(self, step: int) -> float:
        """The value at `step`."""
        whole, part = self.place(step)
        here, there = self.course(whole), self.course(whole + 1)
        return here if here == there else between(here, there, part)


@dataclass(frozen=True)
class RampByEpoch:
    """A ramp in equal steps, one per epoch: end · (e + 1) / E in epoch e (from 0) of E, as JCL's release raises λ.

    >>> ramp = RampByEpoch(2.0, epochs=4, steps_per_epoch=3)
    >>> [ramp(step) for step in (0, 2, 3, 11, 50)]
    [0.5, 0.5, 1.0, 2.0, 2.0]
    """

    end: float
    """The value of the last epoch."""

    epochs: int
    """E, how many epochs the ramp has."""

    steps_per_epoch: int = _IMAGENET_STEPS
    """Optimizer steps of an epoch; 5,004, for ImageNet at batch size 256, until `Run.fit` or `train` sets it."""

    def __post_init__(self) -> None:
        finite(self, "end")
        at_least(self, 1, "epochs", "steps_per_epoch")

    def __call__(self, step: int) -> float:
        """The value of the epoch that `step` is in."""
        return self.end * min(step // self.steps_per_epoch + 1, self.epochs) / self.epochs

    def fit_to(self, images: int, batch_size: int) -> "RampByEpoch":
        """The same ramp, in epochs of `images` images."""
        return replace(self, steps_per_epoch=max(1, images // batch_size))

    def stretch(self, longer: float, finer: float) -> "RampByEpoch":
        """The ramp for `longer` times as many epochs, with `finer` times as many steps in each; still a step per
        epoch."""
        epochs, steps = round(self.epochs * longer), round(self.steps_per_epoch * finer)
        return replace(self, epochs=max(1, epochs), steps_per_epoch=max(1, steps))


def with_steps_per_epoch(value: Any, steps: int) -> Any:
    """A composition of parts and tuples, with the steps of an epoch in every schedule that still has ImageNet's: one
    that was put into a run after `Run.fit`."""

    def counted(part: Any) -> Any:
        is_unset = isinstance(part, _Epochs | RampByEpoch) and part.steps_per_epoch == _IMAGENET_STEPS
        return replace(part, steps_per_epoch=steps) if is_unset else part

    return everywhere(value, counted)
