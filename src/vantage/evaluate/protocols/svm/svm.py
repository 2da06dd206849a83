"""Linear support vector machines on frozen features, one for each class, as evaluated on VOC07.

n: images   m: test images   c: classes   c2: classes of the test images
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Int8
from torch import Tensor

from vantage.data.sources.source import Source, cache_key
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.svm.deepest import EPSILON, MarkedFeatures, deepest, marked_features
from vantage.evaluate.protocols.svm.shared_fits import missing_on_all, shared_fits
from vantage.evaluate.protocols.svm.solver import Machine, Solver, version_of_solver
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder
from vantage.measures.average_precision import average_precision
from vantage.progress import task
from vantage.storage.cache import hash_of
from vantage.storage.results import CachedResults

__all__ = ["COSTS", "SVM", "Costs", "costs_of"]

COSTS = {
    "interclr": (*(2.0**-power for power in range(19, 3, -1)), 1.0, 10.0, 100.0),
    "vissl": (0.01, 0.1, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 50.0, 100.0, 1000.0),
}
"""Lists of C by name: of InterCLR's protocol (arXiv 2008.11702, appendix B), and of VISSL's configurations."""

Costs = Literal["interclr", "vissl"] | tuple[float, ...]
"""Values of C to choose from: a list of `COSTS` by name, or numbers."""


@dataclass(frozen=True)
class SVM:
    """A linear SVM for each class on the deepest map of the backbone (Goyal et al., arXiv 1905.01235; InterCLR, arXiv
    2008.11702, appendix B).

    Features: `deepest` (2 × 2 positions of the deepest map, the whole image squeezed to the view's side), divided by
    their length + 1e-5. For each class one SVM against the rest: squared hinge loss, L2 penalty, errors on images of
    the class counted twice. C is chosen by the mean average precision on 3 folds of the training images (the lowest, if
    several tie). The result is the mean over classes of the average precision on the test images, interpolated at all
    points.

    Images may show several classes (a table file, or a PASCAL VOC folder) or have one class each. Images in which a
    class is difficult to see count as in the released code: negatives in training, left out in testing.
    """

    name: ClassVar[str] = "svm"
    version: ClassVar[int] = 1

    costs: Costs = "interclr"
    """Values of C to choose from: numbers, or the name of a list: interclr (19 values, 2^-19 to 100) or vissl (11
    values, .01 to 1000). With one, nothing is chosen."""
    folds: int = 3
    """Folds of the training images on which C is chosen."""
    difficult_train: int = -1
    """How an image counts in training for a class that is difficult to see in it: -1 (without the class), 1 (with it),
    or 0 (left out)."""
    difficult_test: int = 0
    """The same in testing."""
    positive_weight: float = 2.0
    """Weight of the errors on images that show the class; 1 for the others."""
    iterations: int = 2000
    """Maximum number of passes of the solver over the images."""
    tolerance: float = 1e-4
    """Tolerance at which the solver stops."""
    seed: int = 0
    """Seed of the order in which the solver visits the images."""

    def __post_init__(self) -> None:
        costs_of(self.costs)
        if self.folds < 2 or self.iterations < 1 or not (self.tolerance > 0 and self.positive_weight > 0):
            raise UserError(
                f"svm: folds is {self.folds}, iterations {self.iterations}, tolerance {self.tolerance} and"
                f" positive_weight {self.positive_weight}; give at least 2 folds, 1 iteration, and numbers above 0"
            )
        if {self.difficult_train, self.difficult_test} - {-1, 0, 1}:
            raise UserError(
                f"svm: difficult images count as {self.difficult_train} in training and {self.difficult_test} in"
                " testing; give -1, 0 or 1"
            )

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Fit on `train`, evaluate on `test`. The cache keeps the folds of finished classes, so a stopped evaluation
        continues after the last of them."""
        encoder, words = deepest(encoder)
        train_features, test_features = marked_features(encoder, train, work), marked_features(encoder, test, work)
        mark = replace_difficult(train_features.mark, self.difficult_train)
        test_mark = replace_difficult(test_features.mark, self.difficult_test)
        costs, classes = costs_of(self.costs), train_features.classes
        check_classes(train_features, mark, test_features, test_mark, self.folds if len(costs) > 1 else 1)
        facts = (encoder.digest(), repr(encoder.view), cache_key(train), repr(self), version_of_solver())
        key = hash_of([*facts, work.resolved_device().type])
        on_folds = self._choose(train_features, mark, costs, work, key)
        # The first, if several tie, as in the released code; the lists ascend.
        best = [costs[int(np.argmax([score for score, _ in row]))] for row in on_folds]
        machines = self._fit(train_features, mark, best, work)
        vector = test_features.vector.numpy()
        precision = [
            100.0 * average_precision(torch.from_numpy(machine.score(vector))[one != 0], one[one != 0] == 1)
            for machine, one in zip(machines, test_mark.T, strict=True)
        ]
        failures = sum(count for row in on_folds for _, count in row)
        details = {
            "features": words,
            "average_precision": dict(zip(classes, precision, strict=True)),
            "held_out_precision": dict(zip(classes, [[score for score, _ in row] for row in on_folds], strict=True)),
            "fits_not_converged": failures + sum(not machine.converged for machine in machines),
        }
        by = "the protocol" if len(costs) == 1 else f"average precision on {self.folds} folds of the training images"
        choice: dict[str, float | int | str | list[float]] = {"cost": best, "by": by, "costs": list(costs)}
        how = how_of(encoder, self.solver)
        return Outcome({"mAP": sum(precision) / len(precision)}, len(mark), len(test_mark), choice, details, how)

    @property
    def solver(self) -> Solver:
        """What fits the SVMs."""
        return Solver(self.positive_weight, self.tolerance, self.iterations, self.seed)

    def _choose(
        self, features: MarkedFeatures, mark: Int8[Tensor, "n c"], costs: Sequence[float], work: Work, key: str
    ) -> list[list[tuple[float, int]]]:
        """The precision on held-out images for each class and C, and how many SVMs did not converge."""
        if len(costs) == 1:
            return [[(0.0, 0)] for _ in features.classes]
        results, numbers = CachedResults(work.cache / "svm" / f"{key}.json"), range(len(features.classes))
        missing = missing_on_all(results, [str(number) for number in numbers])
        pairs = [(int(number), cost) for number in missing for cost in costs]
        total = len(numbers) * len(costs)
        vector, column = features.vector.numpy(), mark.T.contiguous().numpy()
        row: list[list[float]] = []
        with task(work.progress, "SVMs on folds", total, total - len(pairs)):
            fits = shared_fits(
                lambda pair: (self.solver.cross_validate, vector, column[pair[0]], pair[1], self.folds),
                pairs, np.array, (2,), size=vector.size, fits=self.folds,
            )  # fmt: skip
            for count, ((number, _), fit) in enumerate(zip(pairs, fits, strict=True), total - len(pairs) + 1):
                row.append(fit.tolist())
                work.progress.advance(count, features.classes[number])
                if len(row) == len(costs):
                    results.add(str(number), row)
                    row = []
        return [[(float(score), int(failures)) for score, failures in results[str(number)]] for number in numbers]

    def _fit(
        self, features: MarkedFeatures, mark: Int8[Tensor, "n c"], costs: Sequence[float], work: Work
    ) -> list[Machine]:
        """The SVM of each class."""
        vector, column = features.vector.numpy(), mark.T.contiguous().numpy()
        machines: list[Machine] = []
        with task(work.progress, "SVMs", len(costs)):
            for row in shared_fits(
                lambda number: (self.solver.fit, vector, column[number], costs[number]),
                range(len(costs)), Machine.row, (vector.shape[1] + 2,), size=vector.size, fits=1,
            ):  # fmt: skip
                machines.append(Machine.of_row(row))
                work.progress.advance(len(machines))
        return machines


def how_of(encoder: FrozenEncoder, solver: Solver) -> dict[str, Any]:
    """What linear SVMs fix: how images are seen, the number added to a feature's length, and the solver."""
    return {"view": repr(encoder.view), "added_to_the_length": EPSILON, "solver": solver.facts}


def costs_of(costs: Costs) -> tuple[float, ...]:
    """The values of C; raises `UserError` if there is none, or one that is not above 0."""
    values = COSTS[costs] if isinstance(costs, str) else tuple(sorted(costs))
    if not values or not all(0 < cost < math.inf for cost in values):
        raise UserError(
            f"linear SVMs: costs is {costs}; give one or more, all above 0 and finite, or the name of a list"
        )
    return values


def replace_difficult(mark: Int8[Tensor, "n c"], difficult: int) -> Int8[Tensor, "n c"]:
    """The marks, with `difficult` in place of 0."""
    return torch.where(mark == 0, torch.tensor(difficult, dtype=mark.dtype), mark)


def check_classes(
    train: MarkedFeatures,
    train_mark: Int8[Tensor, "n c"],
    test: MarkedFeatures,
    test_mark: Int8[Tensor, "m c2"],
    least: int,
) -> None:
    """Raises `UserError` if the two sets do not name the same classes, or if a class has no test image or fewer than
    `least` training images with it or without it."""
    unknown = [name for name in test.classes if name not in set(train.classes)]
    if unknown or test.classes != train.classes:
        only = f" (only test images show {', '.join(unknown[:5])})" if unknown else ""
        raise UserError(f"training and test images have different classes{only}: name sets of the same classes")
    positive, negative = ((train_mark == sign).sum(0).tolist() for sign in (1, -1))
    counts = [(count, f"with {name}") for name, count in zip(train.classes, positive, strict=True)]
    counts += [(count, f"without {name}") for name, count in zip(train.classes, negative, strict=True)]
    too_few = [f"{count} {which}" for count, which in counts if count < least]
    if too_few:
        raise UserError(
            f"linear SVMs need {least} training images with and {least} without each class, but there are"
            f" {', '.join(too_few[:5])}{' …' if too_few[5:] else ''}: give more images, or leave out these classes"
        )
    absent = [name for name, count in zip(train.classes, (test_mark == 1).sum(0), strict=True) if not count]
    if absent:
        raise UserError(
            f"no test image shows {', '.join(absent[:5])}{' …' if absent[5:] else ''}, so average precision is"
            " undefined there: give test images of each class, or leave out these classes"
        )
