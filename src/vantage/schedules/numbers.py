"""Numbers that follow the step: weights, temperatures, percentiles."""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from vantage.schedules.checks import at_least, between, finite, growing, half_cosine, require

__all__ = ["Constant", "Cosine", "Exponential", "Linear", "Schedule", "Steps"]


@runtime_checkable
class Schedule(Protocol):
    """A number that follows the step."""

    def __call__(self, step: int) -> float:
        """The value at `step`, counted from 0."""
        ...


@dataclass(frozen=True)
class Constant:
    """The same number at every step. In `--set`, a plain number stands for it: `weight=0.3`."""

    from_number: ClassVar[bool] = True
    """Whether a plain number stands for this part, where people write one for a field that takes it."""

    value: float
    """The number."""

    def __post_init__(self) -> None:
        finite(self, "value")

    def __call__(self, step: int) -> float:
        """`value`, whatever the step."""
        return self.value


@dataclass(frozen=True)
class Linear:
    """A straight line: start + (end − start) · min(step, steps) / steps, then `end` forever."""

    start: float
    """Value at step 0."""
    end: float
    """Value from step `steps` on."""
    steps: int
    """Length of the line, in steps."""

    def __post_init__(self) -> None:
        finite(self, "start", "end")
        at_least(self, 1, "steps")

    def __call__(self, step: int) -> float:
        """The value on the line at `step`."""
        return between(self.start, self.end, min(step, self.steps) / self.steps)


@dataclass(frozen=True)
class Cosine:
    """Half a cosine: end + (start − end) · ½(1 + cos(π · min(step, steps) / steps)), then `end` forever."""

    start: float
    """Value at step 0."""
    end: float
    """Value from step `steps` on."""
    steps: int
    """Length of the descent (or warm_up), in steps."""

    def __post_init__(self) -> None:
        finite(self, "start", "end")
        at_least(self, 1, "steps")

    def __call__(self, step: int) -> float:
        """The value on the curve at `step`."""
        return half_cosine(self.start, self.end, min(step, self.steps) / self.steps)


@dataclass(frozen=True)
class Steps:
    """Jumps: value · factor^(how many of `at` are ≤ step)."""

    value: float
    """Value at step 0, before the first jump."""
    factor: float
    """What each jump multiplies by."""
    at: tuple[int, ...]
    """The steps of the jumps, in increasing order; a jump takes effect at that very step."""

    def __post_init__(self) -> None:
        finite(self, "value", "factor")
        growing(self, "at")

    def __call__(self, step: int) -> float:
        """The value after the jumps up to and including `step`."""
        return self.value * self.factor ** sum(jump <= step for jump in self.at)


@dataclass(frozen=True)
class Exponential:
    """Exponential approach: end + (start − end) · exp(−rate · step).

    Ring's annealing (arXiv 2010.02037, released code) is `Exponential(1.0, 0.1, rate=0.1)` per step, which has gone
    99 % of the way after 47 steps. Per epoch was likely meant: ByEpoch(Exponential(1.0, 0.1, rate=0.1)).
    """

    start: float
    """Value at step 0."""
    end: float
    """Value that is approached but never quite reached."""
    rate: float
    """Decay per step, above 0; the distance to `end` halves every 0.693 / rate steps."""

    def __post_init__(self) -> None:
        finite(self, "start", "end", "rate")
        require(self, "rate", self.rate, self.rate > 0, "be above 0; for no decay use Constant")

    def __call__(self, step: int) -> float:
        """The value at `step`."""
        return self.end + (self.start - self.end) * math.exp(-self.rate * step)
