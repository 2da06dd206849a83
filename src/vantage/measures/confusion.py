"""How well the pixels of images are told apart, from the table of true classes by guessed ones.

k: classes   p: pixels
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["Confusion"]


@dataclass(frozen=True)
class Confusion:
    """Pixels by their class (rows) and by the class they were given (columns)."""

    count: Int[Tensor, "k k"]
    """How many."""

    @classmethod
    def empty(cls, classes: int) -> "Confusion":
        """No pixels yet."""
        return cls(torch.zeros(classes, classes, dtype=torch.int64))

    def plus(self, truth: Int[Tensor, "p"], guess: Int[Tensor, "p"]) -> "Confusion":
        """With more pixels. Those whose class is no row are passed over: they count nowhere."""
        classes = len(self.count)
        known = (truth >= 0) & (truth < classes)
        cells = truth[known].long() * classes + guess[known].long()
        fresh = torch.bincount(cells.cpu(), minlength=classes * classes).view(classes, classes)
        return Confusion(self.count + fresh)

    def intersection_over_union(self) -> Float[Tensor, "k"]:
        """Of each class, pixels that have it and were given it over pixels that have it or were given it; not a number
        for a class that neither has a pixel nor was given one."""
        right = self.count.diag().double()
        return right / (self.count.sum(0) + self.count.sum(1) - right)

    def recall(self) -> Float[Tensor, "k"]:
        """Of each class, the share of its pixels that were given it; not a number for a class without pixels."""
        return self.count.diag().double() / self.count.sum(1)

    def present(self) -> Bool[Tensor, "k"]:
        """Classes that have pixels."""
        return self.count.sum(1) > 0

    def measures(self) -> dict[str, float]:
        """In percent: the mean intersection over union of the classes that have pixels or were given some, the share
        of pixels that are right, and the mean recall of the classes that have pixels."""
        return {
            "mIoU": 100.0 * float(self.intersection_over_union().nanmean()),
            "pixel accuracy": 100.0 * float(self.count.diag().sum() / self.count.sum()),
            "mean accuracy": 100.0 * float(self.recall().nanmean()),
        }
