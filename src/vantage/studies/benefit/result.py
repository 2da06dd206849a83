"""What was measured: numbers of each cell, differences paired by subset, and tables.

m: test images
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np
from jaxtyping import Bool
from torch import Tensor

from vantage.measures.significance import quantile
from vantage.storage.tables import Table, csv_of, mean_and_deviation
from vantage.studies.benefit.plan import Budget
from vantage.studies.benefit.ways import SCRATCH, TUNED

__all__ = ["BenefitResult", "Cell", "Gap", "Images", "packed", "signed"]


@dataclass(frozen=True)
class Cell:
    """One classifier."""

    way: str
    """How it was made."""

    share: float
    """Share of the labels of each class."""

    labels: int
    """Labeled images that it was made of."""

    seed: int
    """Seed of the subset."""

    right: str
    """A bit for each test image, 1 where it is right, packed into hexadecimal digits."""

    chosen: Mapping[str, Any]
    """What was chosen on images held out of the subset."""

    seconds: float
    """What it took."""

    def hits(self, images: int) -> np.ndarray:
        """1 for each of the test images that is right, 0 for the others."""
        return np.unpackbits(np.frombuffer(bytes.fromhex(self.right), np.uint8), count=images).astype(float)


def packed(right: Bool[Tensor, "m"]) -> str:
    """Bits as hexadecimal digits, as a `Cell` keeps them."""
    return np.packbits(right.numpy()).tobytes().hex()


@dataclass(frozen=True)
class Gap:
    """How far one way is above another in points of accuracy, or how high one is, with its 95 % interval."""

    mean: float
    """Mean over the seeds."""
    low: float
    """Lower end of the interval."""
    high: float
    """Its upper end."""

    @classmethod
    def of(cls, points: np.ndarray) -> "Gap":
        """Of a row for each seed and a column for each test image, in points.

        Both are draws: of subsets and starts, and of images to be judged by. The variance of the mean is the sum of
        that of the seeds' means and that of the images' means (which counts their interaction twice, so the interval is
        rather too wide), with Satterthwaite's degrees of freedom for Student's t.
        """
        parts = [(axis.var(ddof=1) / len(axis), len(axis) - 1) for axis in (points.mean(1), points.mean(0))]
        variance = float(sum(part for part, _ in parts))
        mean = float(points.mean())
        if not variance:
            return cls(mean, mean, mean)
        freedom = variance**2 / float(sum(part**2 / free for part, free in parts))
        half = quantile(0.975, freedom) * variance**0.5
        return cls(mean, mean - half, mean + half)

    @property
    def words(self) -> str:
        """Such as 12.3 [9.8, 14.9]."""
        return f"{signed(self.mean)} [{signed(self.low)}, {signed(self.high)}]"

    @property
    def reverse(self) -> "Gap":
        """How far the other is above the one."""
        return Gap(-self.mean, -self.high, -self.low)


@dataclass(frozen=True)
class Images:
    """The images, and what is to be known about their split."""

    train: int
    """Labeled training images."""
    test: int
    """Labeled test images."""
    split: str
    """Where the test images come from."""
    leaks: tuple[int, ...]
    """Numbers of the test images with a near-duplicate among the training images."""
    seen: int | None
    """Test images that the run was pretrained on; None where that is not known."""


@dataclass(frozen=True)
class BenefitResult:
    """All cells of a comparison."""

    cells: tuple[Cell, ...]
    """A cell for each seed, share and way, the smallest share first."""

    ways: tuple[str, ...]
    """The ways, those of the run first."""

    images: Images
    """The images."""

    budget: Budget
    """What every training could cost."""

    @property
    def labels(self) -> list[int]:
        """Numbers of labels, ascending."""
        return sorted({cell.labels for cell in self.cells})

    def share(self, labels: int) -> float:
        """The share that a number of labels is."""
        return next(cell.share for cell in self.cells if cell.labels == labels)

    def points(self, way: str, labels: int) -> np.ndarray:
        """100 where a test image is right and 0 where it is not: a row for each seed."""
        cells = [cell for cell in self.cells if (cell.way, cell.labels) == (way, labels)]
        return np.stack([100 * cell.hits(self.images.test) for cell in cells])

    def top1(self, way: str, labels: int) -> list[float]:
        """Accuracy of each seed, in percent."""
        return self.points(way, labels).mean(1).tolist()

    def mean(self, way: str, labels: int) -> float:
        """Mean accuracy over the seeds."""
        return fmean(self.top1(way, labels))

    def gap(self, one: str, other: str, labels: int, leaks: bool = True) -> Gap:
        """How far one way is above another at a number of labels, paired by subset and by test image; with or without
        the test images that have a near-duplicate among the training images."""
        points = self.points(one, labels) - self.points(other, labels)
        return Gap.of(points if leaks else np.delete(points, self.images.leaks, 1))

    def table(self) -> Table:
        """A row for each number of labels: mean ± standard deviation of each way, and pretraining's gap to scratch."""
        rows = []
        for labels in self.labels:
            spreads = [self.top1(way, labels) for way in self.ways]
            cells = [mean_and_deviation(fmean(one), stdev(one), 1) for one in spreads]
            gap = self.gap(TUNED, SCRATCH, labels).words
            rows.append((f"{labels:,}", f"{100 * self.share(labels):g} %", *cells, gap))
        return Table(("labels", "share", *self.ways, "fine-tuned − scratch"), tuple(rows), left=())

    def csv(self) -> str:
        """A row for each cell, with all digits."""
        rows = []
        for cell in self.cells:
            chosen = {name: cell.chosen.get(name) for name in ("learning_rate", "epochs", "l2")}
            plain = {"way": cell.way, "share": cell.share, "labels": cell.labels, "seed": cell.seed}
            rows.append(
                {**plain, "top-1 (%)": 100 * cell.hits(self.images.test).mean(), **chosen, "seconds": cell.seconds}
            )
        return csv_of(rows)


def signed(points: float) -> str:
    """A difference with one digit, and a minus sign that is one."""
    return f"{round(points, 1) + 0.0:.1f}".replace("-", "−")
