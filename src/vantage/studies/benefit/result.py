"""The results of each classifier, differences paired by subset, and tables.

m: test images
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from jaxtyping import Bool
from torch import Tensor

from vantage.measures.significance import quantile
from vantage.storage.tables import Mean, Table, csv_of
from vantage.studies.benefit.plan import Budget
from vantage.studies.benefit.ways import SCRATCH, TUNED

__all__ = ["BenefitResult", "ClassifierResult", "Gap", "SplitImages", "pack_bits", "format_points"]


@dataclass(frozen=True)
class ClassifierResult:
    """The result of one classifier."""

    way: str
    """Name of the way in which it was made."""

    share: float
    """Share of the labels of each class."""

    labels: int
    """Number of labeled images that it was trained on."""

    seed: int
    """Seed of the subset."""

    right: str
    """A bit for each test image, 1 where the prediction is right, packed into hexadecimal digits."""

    chosen: Mapping[str, Any]
    """The settings that were chosen on images held out of the subset."""

    seconds: float
    """Time to train and score it."""

    def hits(self, images: int) -> np.ndarray:
        """1 for each test image with a right prediction, 0 for the others."""
        return np.unpackbits(np.frombuffer(bytes.fromhex(self.right), np.uint8), count=images).astype(float)


def pack_bits(right: Bool[Tensor, "m"]) -> str:
    """Bits as hexadecimal digits, as a `ClassifierResult` stores them."""
    return np.packbits(right.numpy()).tobytes().hex()


@dataclass(frozen=True)
class Gap:
    """The difference of two ways in points of accuracy, or the accuracy of one, with a 95 % interval."""

    mean: float
    """Mean over the seeds."""
    low: float
    """Lower end of the interval."""
    high: float
    """Its upper end."""

    @classmethod
    def of(cls, points: np.ndarray) -> "Gap":
        """The gap from a table in points: a row for each seed and a column for each test image.

        Both are random: seeds draw subsets and initial weights, and the test images are a sample. The variance of the
        mean is the sum of the variance from the seeds' means and that from the images' means (which counts their
        interaction twice, so the interval tends to be too wide), with Satterthwaite's degrees of freedom for
        Student's t.
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
        """The gap as text, such as 12.3 [9.8, 14.9]."""
        return f"{format_points(self.mean)} [{format_points(self.low)}, {format_points(self.high)}]"

    @property
    def reverse(self) -> "Gap":
        """The gap in the other direction."""
        return Gap(-self.mean, -self.high, -self.low)


@dataclass(frozen=True)
class SplitImages:
    """The number of images, and facts about their split."""

    train: int
    """Number of labeled training images."""
    test: int
    """Number of labeled test images."""
    split: str
    """Where the test images come from."""
    leaks: tuple[int, ...]
    """Numbers of the test images with a near-duplicate among the training images."""
    in_pretraining: int | None
    """How many test images the run was pretrained on; None if unknown."""


@dataclass(frozen=True)
class BenefitResult:
    """All results of a comparison."""

    classifiers: tuple[ClassifierResult, ...]
    """A result for each seed, share and way, the smallest share first."""

    ways: tuple[str, ...]
    """Names of the ways, starting with those of the run."""

    images: SplitImages
    """The images."""

    budget: Budget
    """The limits that every training had."""

    @property
    def labels(self) -> list[int]:
        """Numbers of labels, ascending."""
        return sorted({cell.labels for cell in self.classifiers})

    def share(self, labels: int) -> float:
        """The share of all labels that a number of labels stands for."""
        return next(cell.share for cell in self.classifiers if cell.labels == labels)

    def points(self, way: str, labels: int) -> np.ndarray:
        """100 where the prediction for a test image is right and 0 where it is wrong: a row for each seed."""
        classifiers = [cell for cell in self.classifiers if (cell.way, cell.labels) == (way, labels)]
        return np.stack([100 * cell.hits(self.images.test) for cell in classifiers])

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
            cells = [Mean.of(self.top1(way, labels)).words(1) for way in self.ways]
            gap = self.gap(TUNED, SCRATCH, labels).words
            rows.append((f"{labels:,}", f"{100 * self.share(labels):g} %", *cells, gap))
        return Table(("labels", "share", *self.ways, "fine-tuned − scratch"), tuple(rows), left=())

    def csv(self) -> str:
        """A row for each result, with all digits."""
        rows = []
        for cell in self.classifiers:
            choice = {name: cell.chosen.get(name) for name in ("learning_rate", "epochs", "l2")}
            columns = {"way": cell.way, "share": cell.share, "labels": cell.labels, "seed": cell.seed}
            rows.append(
                {**columns, "top-1 (%)": 100 * cell.hits(self.images.test).mean(), **choice, "seconds": cell.seconds}
            )
        return csv_of(rows)


def format_points(points: float) -> str:
    """A difference with one decimal and a true minus sign."""
    return f"{round(points, 1) + 0.0:.1f}".replace("-", "−")
