"""How well the pixels of images are classified, from a table of true classes by guessed classes.

k: classes   p: pixels
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["Confusion"]


@dataclass(frozen=True)
class Confusion:
    """Pixels by their true class (rows) and their guessed class (columns)."""

    count: Int[Tensor, "k k"]
    """Number of pixels."""

    @classmethod
    def empty(cls, classes: int) -> "Confusion":
        """No pixels yet."""
        return cls(torch.zeros(classes, classes, dtype=torch.int64))

    def plus(self, truth: Int[Tensor, "p"], guess: Int[Tensor, "p"]) -> "Confusion":
        """With more pixels added. Pixels whose true class is not a row are ignored."""
        classes = len(self.count)
        valid = (truth >= 0) & (truth < classes)
        cells = truth[valid].long() * classes + guess[valid].long()
        fresh = torch.bincount(cells.cpu(), minlength=classes * classes).view(classes, classes)
        return Confusion(self.count + fresh)

    def intersection_over_union(self) -> Float[Tensor, "k"]:
        """For each class, the number of pixels that have it and are guessed as it, over the number that have it or are
        guessed as it; NaN for a class without any."""
        right = self.count.diag().double()
        return right / (self.count.sum(0) + self.count.sum(1) - right)

    def recall(self) -> Float[Tensor, "k"]:
        """For each class, the share of its pixels that are guessed right; NaN for a class without pixels."""
        return self.count.diag().double() / self.count.sum(1)

    def present(self) -> Bool[Tensor, "k"]:
        """Whether each class has pixels."""
        return self.count.sum(1) > 0

    def measures(self) -> dict[str, float]:
        """In percent: mean intersection over union of the classes with true or guessed pixels, the share of pixels
        guessed right, and mean recall of the classes with pixels."""
        return {
            "mIoU": 100.0 * float(self.intersection_over_union().nanmean()),
            "pixel accuracy": 100.0 * float(self.count.diag().sum() / self.count.sum()),
            "mean accuracy": 100.0 * float(self.recall().nanmean()),
        }
