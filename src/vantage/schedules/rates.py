"""Learning rates that follow the epochs."""

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from vantage.schedules.checks import at_least, check_length, growing, half_cosine, move_epoch, require, warm_up

__all__ = ["CosineByEpoch", "CosineByStep", "LearningRate", "StepDecay"]


@runtime_checkable
class LearningRate(Protocol):
    """A learning rate that follows the step, in terms of epochs."""

    def __call__(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """The learning rate of `step` (from 0) in a run of `epochs` epochs of `steps_per_epoch` optimizer steps."""
        ...

    def scale(self, factor: float) -> "LearningRate":
        """The same schedule at `factor` times the learning rate, as for a batch `factor` times as large."""
        ...

    def for_epochs(self, epochs: int, to: int) -> "LearningRate":
        """The same schedule for a run of `to` epochs instead of `epochs`; events tied to an epoch move in
        proportion."""
        ...


@dataclass(frozen=True)
class CosineByEpoch:
    """Learning rate on half a cosine that moves once per epoch, as in MoCo v2 (arXiv 2003.04297).

    With n steps per epoch, E epochs and w warm-up epochs, at step s of epoch e = ⌊s / n⌋:

        warm-up (e < w):  base · (s + 1) / (w · n)
        then:             final + (base − final) · ½(1 + cos(π (e + f − w) / (E − w)))

    MoCo's own schedule has w = 0, f = 0 and final = 0; its last epoch still trains, since e is E − 1 there. PyContrast
    counts epochs from f = 1, so its last epoch trains at `final`. Warm-up moves at every step and reaches `base` at its
    last step. The rate at step 0 is above 0, so that no step is wasted.
    """

    base: float
    """Highest learning rate, as handed to the optimizer (already scaled to the batch)."""
    final: float = 0.0
    """Learning rate that the curve reaches at the end of the last epoch."""
    warmup_epochs: int = 0
    """Epochs of linear warm-up."""
    first: int = 0
    """Number of the first epoch, f: 0, or 1 if the curve begins an epoch further on."""

    def scale(self, factor: float) -> "CosineByEpoch":
        """The same schedule at `factor` times the learning rate."""
        return replace(self, base=self.base * factor, final=self.final * factor)

    def for_epochs(self, epochs: int, to: int) -> "CosineByEpoch":
        """The same schedule for `to` epochs instead of `epochs`."""
        return replace(self, warmup_epochs=move_epoch(self.warmup_epochs, epochs, to))

    def __post_init__(self) -> None:
        at_least(self, 0, "base", "final", "warmup_epochs")
        require(self, "first", self.first, self.first in (0, 1), "be 0 or 1")

    def __call__(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """The learning rate of `step`; raises `UserError` if the warm-up fills the whole run."""
        check_length(self, step, steps_per_epoch, epochs, self.warmup_epochs)
        if step < self.warmup_epochs * steps_per_epoch:
            return warm_up(self.base, step, self.warmup_epochs * steps_per_epoch)
        epoch = min(step // steps_per_epoch + self.first, epochs) - self.warmup_epochs
        return half_cosine(self.base, self.final, epoch / (epochs - self.warmup_epochs))


@dataclass(frozen=True)
class CosineByStep:
    """Learning rate on half a cosine that moves at every step, as in SimCLR (arXiv 2002.05709).

    With n steps per epoch, E epochs and w warm-up epochs, at step s:

        warm-up (s < w n):  base · (s + 1) / (w · n)
        then:               final + (base − final) · ½(1 + cos(π (s − w n) / (E n − w n)))

    SimCLR's release warms up with s / (w n), one step later, so that its first step has a rate of 0.
    """

    base: float
    """Highest learning rate, as handed to the optimizer (already scaled to the batch)."""
    final: float = 0.0
    """Learning rate that the curve reaches after the last step."""
    warmup_epochs: int = 0
    """Epochs of linear warm-up."""

    def scale(self, factor: float) -> "CosineByStep":
        """The same schedule at `factor` times the learning rate."""
        return replace(self, base=self.base * factor, final=self.final * factor)

    def for_epochs(self, epochs: int, to: int) -> "CosineByStep":
        """The same schedule for `to` epochs instead of `epochs`."""
        return replace(self, warmup_epochs=move_epoch(self.warmup_epochs, epochs, to))

    def __post_init__(self) -> None:
        at_least(self, 0, "base", "final", "warmup_epochs")

    def __call__(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """The learning rate of `step`; raises `UserError` if the warm-up fills the whole run."""
        check_length(self, step, steps_per_epoch, epochs, self.warmup_epochs)
        warmup = self.warmup_epochs * steps_per_epoch
        if step < warmup:
            return warm_up(self.base, step, warmup)
        length = epochs * steps_per_epoch - warmup
        return half_cosine(self.base, self.final, min(step - warmup, length) / length)


@dataclass(frozen=True)
class StepDecay:
    """Learning rate that drops at given epochs, as in instance discrimination and MoCo v1.

    With n steps per epoch and w warm-up epochs, at step s of epoch e = ⌊s / n⌋:

        warm-up (e < w):  base · (s + 1) / (w · n)
        then:             base · factor^(how many of `milestones` are ≤ e)

    Without `milestones` the rate is constant. Milestones after the last epoch have no effect, so a shorter run needs
    its own.
    """

    base: float
    """Highest learning rate, as handed to the optimizer (already scaled to the batch)."""
    factor: float = 0.1
    """What each drop multiplies by."""
    milestones: tuple[int, ...] = (120, 160)
    """The epochs (from 0) at whose first step the rate drops, in increasing order."""
    warmup_epochs: int = 0
    """Epochs of linear warm-up; no drop may come before its end."""

    def scale(self, factor: float) -> "StepDecay":
        """The same schedule at `factor` times the learning rate."""
        return replace(self, base=self.base * factor)

    def for_epochs(self, epochs: int, to: int) -> "StepDecay":
        """The same schedule for `to` epochs instead of `epochs`. Drops that would fall on one epoch go to successive
        epochs, and no drop moves to the first epoch."""
        drops: list[int] = []
        for drop in self.milestones:
            drops.append(max(move_epoch(drop, epochs, to), drops[-1] + 1 if drops else min(drop, 1)))
        return replace(self, milestones=tuple(drops), warmup_epochs=move_epoch(self.warmup_epochs, epochs, to))

    def __post_init__(self) -> None:
        at_least(self, 0, "base", "factor", "warmup_epochs")
        growing(self, "milestones")
        late = all(drop >= self.warmup_epochs for drop in self.milestones)
        require(self, "milestones", self.milestones, late, f"come after the {self.warmup_epochs} epochs of warm-up")

    def __call__(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """The learning rate of `step`; raises `UserError` if the warm-up fills the whole run."""
        check_length(self, step, steps_per_epoch, epochs, self.warmup_epochs)
        if step < self.warmup_epochs * steps_per_epoch:
            return warm_up(self.base, step, self.warmup_epochs * steps_per_epoch)
        return self.base * self.factor ** sum(drop <= step // steps_per_epoch for drop in self.milestones)
