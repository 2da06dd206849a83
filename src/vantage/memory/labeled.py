"""A bank whose clusters are given: a control for banks that find them.

m: images   d: width
"""

from dataclasses import dataclass

import torch

from vantage.memory.bank import Bank
from vantage.memory.first_labels import Apart, FirstLabels
from vantage.memory.labeled_rows import LabeledRows
from vantage.records import Keys

__all__ = ["LabeledBank", "LabeledStore"]


@dataclass(frozen=True)
class LabeledBank:
    """A bank whose labels are given and never change.

    A control that no paper has: with the true classes as `labels` it shows what `ClusteredBank` would give if its
    clusters were perfect. Rows start at random, as in `Bank`.
    """

    momentum: float = 0.5
    """Weight on the old row, 0 (replace) to 1 (never change)."""

    labels: FirstLabels = Apart()
    """Which images share a cluster; `Blocks` for the classes of a set that is sorted by class."""

    sharded: bool = False
    """Whether each process holds only its share of the rows, as in `Bank`. Every process has all labels."""

    def __post_init__(self) -> None:
        Bank(self.momentum)

    def build(self, images: int, width: int) -> "LabeledStore":
        """A bank of random unit vectors."""
        return LabeledStore(images, width, self)


class LabeledStore(LabeledRows):
    """The store of `LabeledBank`; its rows and labels are saved in checkpoints."""

    def __init__(self, images: int, width: int, choice: LabeledBank) -> None:
        super().__init__(images, width, clusters=1, clusterings=1, sharded=choice.sharded)
        self.momentum = choice.momentum
        self.label.copy_(choice.labels.of(torch.arange(images))[:, None])

    @torch.no_grad()
    def write(self, fresh: Keys) -> None:
        """Update the rows of these images. Raises `UserError` as `BankStore.write` does."""
        if len(fresh):
            self.write_rows(fresh, self.momentum)
