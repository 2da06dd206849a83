"""How often an image's class is among the first guesses.

n: images   t: guesses for an image   c: classes
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["Accuracy", "accuracy", "best_classes", "error_of_difference"]

TOP1, TOP5 = "top-1", "top-5"
_FIVE = 5


@dataclass(frozen=True)
class Accuracy:
    """Shares of the test images, in percent."""

    top1: float
    """Images whose class is the first guess."""

    top5: float | None
    """Images whose class is among the first five guesses; None with five classes or fewer, or with fewer guesses."""

    def measures(self) -> dict[str, float]:
        """By name, as in an `Outcome`."""
        return {TOP1: self.top1} if self.top5 is None else {TOP1: self.top1, TOP5: self.top5}


def accuracy(guess: Int[Tensor, "n t"], label: Int[Tensor, "n"], classes: int) -> Accuracy:
    """Accuracy of guesses in order, best first, by a classifier trained on images of `classes` classes. An image whose
    class is not among the guesses counts as wrong, even if no training image had that class."""
    hit = guess == label[:, None]
    top5 = _share(hit[:, :_FIVE].any(1)) if min(classes - 1, guess.shape[1]) >= _FIVE else None
    return Accuracy(_share(hit[:, 0]), top5)


def best_classes(score: Float[Tensor, "n c"]) -> Int[Tensor, "n t"]:
    """The five classes (fewer if there are fewer) with the highest scores, best first; scores that are not numbers come
    last."""
    comparable = torch.where(score.isnan(), -torch.inf, score)
    return comparable.topk(min(_FIVE, score.shape[1]), dim=1).indices


def error_of_difference(one: float, other: float, images: int) -> float:
    """Standard error of the difference of two accuracies in percent, each on this many images."""
    return float(sum(share * (100 - share) for share in (one, other)) / max(1, images)) ** 0.5


def _share(hit: Tensor) -> float:
    return 100.0 * float(hit.double().mean())
