"""What is compared: numbers of labels, seeds, and one budget for every training."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from vantage.errors import UserError
from vantage.evaluate import FineTune, LinearCached

__all__ = ["BenefitPlan", "Budget"]

_STEPS = 10
"""Minimum number of training steps per epoch of the budget."""


@dataclass(frozen=True)
class Budget:
    """The limits of every training, whatever the network starts from."""

    epochs: int = 30
    """Passes over the images; more with few labels, so that there are at least ten times as many steps."""

    batch_size: int = 64
    """Images in a step."""

    learning_rates: tuple[float, ...] = (0.01, 0.03, 0.1)
    """Learning rates of the whole network to choose from."""

    penalties: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    """L2 penalties of the linear classifier on frozen features to choose from."""

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("batch_size", 2)):
            if getattr(self, name) < least:
                raise UserError(f"{name} is {getattr(self, name)}: give at least {least}")
        for name in ("learning_rates", "penalties"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values) or not all(0 < one < math.inf for one in values):
                words = " ".join(f"{one:g}" for one in values) or "empty"
                raise UserError(
                    f"{name} to choose from: {words}; give at least one number, all different, finite and above 0"
                )

    def epochs_of(self, images: int) -> int:
        """Passes over this number of images."""
        steps = math.ceil(images / self.batch_size)
        return max(self.epochs, math.ceil(_STEPS * self.epochs / steps))

    def trainings(self, images: int, seed: int) -> tuple[FineTune, ...]:
        """Fine-tuning on all of these images, once for each learning rate."""
        epochs = self.epochs_of(images)
        return tuple(
            FineTune(1.0, "", 1, epochs, self.batch_size, rate, rate, seed=seed) for rate in self.learning_rates
        )

    def probe(self, seed: int, choose: bool) -> LinearCached:
        """The linear classifier on frozen features; without a choice, at the middle penalty."""
        return LinearCached(self.penalties if choose else (middle(self.penalties),), seed=seed)


@dataclass(frozen=True)
class BenefitPlan:
    """The numbers of labels, the seeds and the budget of a comparison.

    Raises `UserError` for shares outside (0, 1], for fewer than two seeds, and for anything named twice.
    """

    shares: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.5, 1.0)
    """Shares of the labels of each class, at least one image of each."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    """Seeds; each draws its own subsets, the smaller ones within the larger, and its own random network."""

    budget: Budget = Budget()
    """The limits of every training."""

    def __post_init__(self) -> None:
        if not self.shares or len(set(self.shares)) < len(self.shares) or not all(0 < one <= 1 for one in self.shares):
            words = " ".join(f"{100 * share:g}" for share in self.shares)
            raise UserError(f"shares of the labels: {words} %; give each once, above 0 and at most 100")
        if len(self.seeds) < 2 or len(set(self.seeds)) < len(self.seeds):
            words = " ".join(map(str, self.seeds)) or "none"
            raise UserError(f"seeds: {words}; an interval needs at least two different ones, such as 0 1, each once")

    def pairs(self) -> Iterator[tuple[int, float]]:
        """Every seed with every share, seed by seed, so that all shares have results early; the smallest first."""
        return ((seed, share) for seed in self.seeds for share in sorted(self.shares))


def middle(values: tuple[float, ...]) -> float:
    """The median of some numbers; of an even number of them, the lower middle one."""
    return sorted(values)[(len(values) - 1) // 2]
