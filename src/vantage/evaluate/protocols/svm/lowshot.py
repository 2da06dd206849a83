"""Linear SVMs on a few images of each class: how few labels a representation needs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.svm.samples import SamplePlan, SampleResults, evaluate_samples
from vantage.evaluate.protocols.svm.solver import Solver
from vantage.evaluate.protocols.svm.svm import Costs, costs_of
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder

__all__ = ["LowShot", "LowShotChosen", "LowShotSettings"]

_SOLVER_SEED = 0
"""Seed of the order in which the solver visits the images."""


@dataclass(frozen=True)
class LowShotSettings:
    """The settings that both low-shot protocols share."""

    name: ClassVar[str]

    shots: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 96)
    """Values of k, the number of images with the class."""
    samples: int = 5
    """Independent samples for every k."""
    negatives: int = 19
    """Images without the class in a sample, for every image with it."""
    costs: Costs = "interclr"
    """Values of C to choose from: numbers, or the name of a list: interclr (19 values, 2^-19 to 100) or vissl (11
    values, .01 to 1000)."""
    positive_weight: float = 2.0
    """Weight of the errors on images that show the class; 1 for the others."""
    iterations: int = 2000
    """Maximum number of passes of the solver over the images."""
    tolerance: float = 1e-4
    """Tolerance at which the solver stops."""
    seed: int = 0
    """Seed of the samples."""

    def __post_init__(self) -> None:
        shots = self.shots
        if not shots or min(shots) < 1 or len(set(shots)) < len(shots) or self.samples < 1 or self.negatives < 1:
            raise UserError(
                f"{self.name}: shots is {shots}, samples {self.samples} and negatives {self.negatives}; give different"
                " values of k, and no number below 1"
            )
        if self.iterations < 1 or not all(0 < one < math.inf for one in (self.tolerance, self.positive_weight)):
            raise UserError(
                f"{self.name}: iterations is {self.iterations}, tolerance {self.tolerance} and positive_weight"
                f" {self.positive_weight}; give at least 1 iteration, and finite numbers above 0"
            )
        costs_of(self.costs)

    def plan(self, choice: tuple[int, float] | tuple[()]) -> SamplePlan:
        """A plan with these settings. `choice` holds folds, and C for k = 1; () for SVMs of every C."""
        solver = Solver(self.positive_weight, self.tolerance, self.iterations, _SOLVER_SEED)
        costs = costs_of(self.costs)
        return SamplePlan(self.shots, self.samples, self.negatives, self.seed, costs, choice, solver)


@dataclass(frozen=True)
class LowShot(LowShotSettings):
    """Linear SVMs on k images of each class, with C chosen by test labels (oracle-C) as in the released code (Goyal et
    al., arXiv 1905.01235; InterCLR, arXiv 2008.11702, figure 5).

    The result is the mean over k, samples and classes. For every k, sample and class, k images with the class and 19 k
    without it are drawn, and an SVM is trained on them, with the features and the solver of `SVM`. Oracle-C: for every
    k, the result is that of the C with the best mean average precision on the test images, over samples and classes. C
    is chosen by test labels, so the numbers are too good: compare them only with published numbers of this protocol.
    `LowShotChosen` chooses without test labels.

    Images in which a class is difficult to see are never drawn for it, and are left out in testing.
    """

    name: ClassVar[str] = "lowshot"
    version: ClassVar[int] = 1

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Fit on samples of `train`, evaluate on `test`. The cache keeps finished samples, so a stopped evaluation
        continues."""
        plan = self.plan(())
        results = evaluate_samples(plan, encoder, train, test, work)
        curve: dict[int, list[float]] = {}
        best: list[float] = []
        for k in self.shots:
            by_sample = torch.stack([results.precision[k, sample].mean(0) for sample in range(self.samples)])
            column = int(by_sample.mean(0).argmax())
            curve[k] = by_sample[:, column].tolist()
            best.append(plan.costs[column])
        by = "the best mean average precision on the TEST images, for every k (oracle-C)"
        return _outcome("oracle-C mAP", curve, {"cost": best, "by": by, "costs": list(plan.costs)}, results)


@dataclass(frozen=True)
class LowShotChosen(LowShotSettings):
    """As `LowShot`, with C chosen without test labels.

    For every sample and class, C is chosen by the mean average precision on folds of the sample. With one image of the
    class nothing can be held out, so C is `cost_of_one`; with two images there are two folds.
    """

    name: ClassVar[str] = "lowshot-cv"
    version: ClassVar[int] = 1

    folds: int = 3
    """Folds of a sample on which C is chosen; k folds if k is smaller."""
    cost_of_one: float = 1.0
    """C for k = 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.folds < 2 or not 0 < self.cost_of_one < math.inf:
            raise UserError(
                f"{self.name}: folds is {self.folds} and cost_of_one {self.cost_of_one}; give at least 2 folds and a"
                " finite cost above 0"
            )

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Fit on samples of `train`, evaluate on `test`. The cache keeps finished samples, so a stopped evaluation
        continues."""
        plan = self.plan((self.folds, self.cost_of_one))
        results = evaluate_samples(plan, encoder, train, test, work)
        curve = {k: [float(results.precision[k, sample].mean()) for sample in range(self.samples)] for k in self.shots}
        by = f"average precision on up to {self.folds} folds of the images drawn, for every sample and class"
        return _outcome("mAP", curve, {"by": by, "costs": list(plan.costs)}, results)


def _outcome(name: str, curve: Mapping[int, list[float]], choice: dict[str, Any], results: SampleResults) -> Outcome:
    mean = {k: sum(values) / len(values) for k, values in curve.items()}
    measures = {name: sum(mean.values()) / len(mean), **{f"k={k}": value for k, value in mean.items()}}
    details = {"features": results.features, "shots": {str(k): values for k, values in curve.items()}}
    return Outcome(measures, results.train_images, results.test_images, choice, details, results.how)
