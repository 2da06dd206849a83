"""Linear SVMs on a few images of each class: how little a representation needs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.svm.samples import Judged, SamplePlan, judge
from vantage.evaluate.protocols.svm.solver import Solver
from vantage.evaluate.protocols.svm.svm import Costs, costs_of
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder

__all__ = ["LowShot", "LowShotChosen"]

_SOLVER_SEED = 0
"""Of the order in which the solver visits the images."""


@dataclass(frozen=True)
class LowShot:
    """Linear SVMs on k images of each class, the mean over k, samples and classes (Goyal et al., arXiv 1905.01235;
    InterCLR, arXiv 2008.11702, figure 5), with oracle-C, as the released code has it.

    For every k, sample and class, k images with the class and 19 k of those without it are drawn and a machine is
    trained; features and machines are those of `SVM`. Oracle-C: for every k that C is told whose mean average precision
    on the test images, over samples and classes, is best. So test labels have chosen it, and the numbers are too good:
    compare them with published ones of this protocol alone. `LowShotChosen` chooses without test labels.

    Images whose class is difficult to see are never drawn for it, and are left out in testing.
    """

    name: ClassVar[str] = "lowshot"
    version: ClassVar[int] = 1

    shots: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 96)
    """Values of k, in images with the class."""
    samples: int = 5
    """Independent draws for every k."""
    negatives: int = 19
    """Images without the class that are drawn for every image with it."""
    costs: Costs = "interclr"
    """Values of C: numbers, or the name of a list: interclr (19 values, 2^-19 to 100) or vissl (11 values, .01 to
    1000)."""
    positive_weight: float = 2.0
    """Weight of the errors on images that show the class; 1 for the others."""
    iterations: int = 2000
    """Most passes of the solver over the images."""
    tolerance: float = 1e-4
    """When the solver stops."""
    seed: int = 0
    """Of the images drawn."""

    def __post_init__(self) -> None:
        _check(self)
        costs_of(self.costs)

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Fit on samples of `train`, count on `test`. Samples that are done are kept in the cache, so that a stopped
        evaluation goes on."""
        costs = costs_of(self.costs)
        found = judge(_plan(self, costs, ()), encoder, train, test, work)
        curve: dict[int, list[float]] = {}
        chosen: list[float] = []
        for k in self.shots:
            by_sample = torch.stack([found.precision[k, sample].mean(0) for sample in range(self.samples)])
            place = int(by_sample.mean(0).argmax())
            curve[k] = by_sample[:, place].tolist()
            chosen.append(costs[place])
        by = "the best mean average precision on the TEST images, for every k (oracle-C)"
        return _outcome("oracle-C mAP", curve, {"cost": chosen, "by": by, "costs": list(costs)}, found)


@dataclass(frozen=True)
class LowShotChosen:
    """As `LowShot`, with C chosen without test labels: of every sample and class by the mean average precision on folds
    of the images that were drawn.

    Of one image with the class nothing can be held out, so `cost_of_one` is taken; of two images there are two folds.
    """

    name: ClassVar[str] = "lowshot-cv"
    version: ClassVar[int] = 1

    shots: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 96)
    """Values of k, in images with the class."""
    samples: int = 5
    """Independent draws for every k."""
    negatives: int = 19
    """Images without the class that are drawn for every image with it."""
    costs: Costs = "interclr"
    """Values of C to choose from: numbers, or the name of a list: interclr (19 values, 2^-19 to 100) or vissl (11
    values, .01 to 1000)."""
    folds: int = 3
    """Parts of the images drawn that choose C; k of them where k is less."""
    cost_of_one: float = 1.0
    """C where k is 1."""
    positive_weight: float = 2.0
    """Weight of the errors on images that show the class; 1 for the others."""
    iterations: int = 2000
    """Most passes of the solver over the images."""
    tolerance: float = 1e-4
    """When the solver stops."""
    seed: int = 0
    """Of the images drawn."""

    def __post_init__(self) -> None:
        _check(self)
        costs_of(self.costs)
        if self.folds < 2 or not 0 < self.cost_of_one < math.inf:
            raise UserError(
                f"{self.name}: folds is {self.folds} and cost_of_one {self.cost_of_one}; give at least 2 folds and a"
                " cost above 0"
            )

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Fit on samples of `train`, count on `test`. Samples that are done are kept in the cache, so that a stopped
        evaluation goes on."""
        costs = costs_of(self.costs)
        folds = (self.folds, self.cost_of_one)
        found = judge(_plan(self, costs, folds), encoder, train, test, work)
        curve = {k: [float(found.precision[k, sample].mean()) for sample in range(self.samples)] for k in self.shots}
        by = f"average precision on up to {self.folds} folds of the images drawn, for every sample and class"
        return _outcome("mAP", curve, {"by": by, "costs": list(costs)}, found)


def _plan(
    asked: LowShot | LowShotChosen, costs: tuple[float, ...], choice: tuple[int, float] | tuple[()]
) -> SamplePlan:
    solver = Solver(asked.positive_weight, asked.tolerance, asked.iterations, _SOLVER_SEED)
    return SamplePlan(asked.shots, asked.samples, asked.negatives, asked.seed, costs, choice, solver)


def _check(asked: LowShot | LowShotChosen) -> None:
    shots = asked.shots
    if not shots or min(shots) < 1 or len(set(shots)) < len(shots) or asked.samples < 1 or asked.negatives < 1:
        raise UserError(
            f"{asked.name}: shots is {shots}, samples {asked.samples} and negatives {asked.negatives}; give different"
            " values of k, and none of the numbers below 1"
        )
    if asked.iterations < 1 or not all(0 < one < math.inf for one in (asked.tolerance, asked.positive_weight)):
        raise UserError(
            f"{asked.name}: iterations is {asked.iterations}, tolerance {asked.tolerance} and positive_weight"
            f" {asked.positive_weight}; give at least 1 iteration, and finite numbers above 0"
        )


def _outcome(name: str, curve: Mapping[int, list[float]], chosen: dict[str, Any], found: Judged) -> Outcome:
    mean = {k: sum(values) / len(values) for k, values in curve.items()}
    measures = {name: sum(mean.values()) / len(mean), **{f"k={k}": value for k, value in mean.items()}}
    details = {"features": found.features, "shots": {str(k): values for k, values in curve.items()}}
    return Outcome(measures, found.train_images, found.test_images, chosen, details, found.how)
