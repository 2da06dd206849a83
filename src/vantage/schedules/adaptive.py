"""Numbers that follow how training goes: a step towards the hard end if it goes well, a step back if it does not.

They depend on state, so these are frozen choices. A `Learner` builds the state, saves it in its buffers, reports the
loss or the accuracy to it, and uses its current number in place of the choice.

w: length of the window
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage.schedules.checks import at_least, finite, require

__all__ = ["AdaptiveState", "Adaptive", "FollowsAccuracy", "FollowsLoss"]


class AdaptiveState(nn.Module):
    """The value of an adaptive number, and its latest scores, in buffers that are saved in checkpoints."""

    value: Tensor
    recent: Tensor
    updates: Tensor

    def __init__(self, start: float, end: float, by: float, window: int) -> None:
        super().__init__()
        self.start, self.end, self.by = start, end, by
        self.register_buffer("value", torch.tensor(start, dtype=torch.float64))
        self.register_buffer("recent", torch.zeros(window, dtype=torch.float64))
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def update(self, score: Float[Tensor, ""]) -> None:
        """Move one step towards `end` if the score is above the mean of the preceding window, towards `start` if it is
        below. Nothing moves until the window is full."""
        score, window = score.to(self.recent), len(self.recent)
        towards = torch.sign(score - self.recent.mean()) * (1.0 if self.end > self.start else -1.0)
        low, high = min(self.start, self.end), max(self.start, self.end)
        value = (self.value + self.by * towards).clamp(low, high)
        self.value.copy_(torch.where(self.updates >= window, value, self.value))
        self.recent[self.updates % window] = score
        self.updates += 1


@dataclass(frozen=True)
class Adaptive(ABC):
    """What both kinds share. In a branch used without a learner it is a schedule that stays at `start`."""

    start: float = 1.0
    """Value at the beginning: the easy end. The number always stays between `start` and `end`."""

    end: float = 0.1
    """Value towards which it moves while training goes well: the hard end."""

    by: float = 0.01
    """How far it moves in one update."""

    window: int = 10
    """How many of the latest scores are averaged for the comparison."""

    def __post_init__(self) -> None:
        finite(self, "start", "end", "by")
        at_least(self, 1, "window")
        require(self, "by", self.by, self.by > 0, "be above 0")

    def __call__(self, step: int) -> float:
        """`start`."""
        return self.start

    def build(self) -> AdaptiveState:
        """The state at the beginning of a run."""
        return AdaptiveState(self.start, self.end, self.by, self.window)

    @property
    @abstractmethod
    def needs_accuracy(self) -> bool:
        """Whether it follows accuracies, not losses."""


@dataclass(frozen=True)
class FollowsLoss(Adaptive):
    """Moves at every step, comparing the loss with the mean of the last ten losses: a lower loss makes it harder.

    Ring's adaptive annealing on the loss, from its code (arXiv 2010.02037): .01 a step, between 1 and .1. The loss is
    that of the whole run, over all branches and processes.
    """

    @property
    def needs_accuracy(self) -> bool:
        """No."""
        return False


@dataclass(frozen=True)
class FollowsAccuracy(Adaptive):
    """Moves at every validation, comparing the accuracy with the mean of the last five: a higher one makes it harder.

    Ring's adaptive annealing on the accuracy, from its code (arXiv 2010.02037): .05 at a time, between 1 and .1. The
    accuracy is that of kNN on a tenth of the labeled training images, measured every `Monitoring.knn_every` epochs; the
    released code measures it on the test set.
    """

    by: float = 0.05
    """How far it moves in one update."""

    window: int = 5
    """How many of the latest scores are averaged for the comparison."""

    @property
    def needs_accuracy(self) -> bool:
        """Yes."""
        return True
