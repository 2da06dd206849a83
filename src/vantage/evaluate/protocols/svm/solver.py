"""Linear support vector machines by scikit-learn, on all cores.

Nothing here needs torch: worker processes import this module, and should not wait for it.

n: images   k: images that are not left out   r: images chosen   d: width of the features
"""

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import joblib
import numpy as np
from jaxtyping import Float, Int, Int8
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

__all__ = ["Machine", "Solver", "in_parallel", "processes_for"]

_KIND: dict[str, Any] = {"penalty": "l2", "loss": "squared_hinge", "dual": True}
_BYTES = 28  # of a number while it is fitted: as float32, as float64, and in a node of the solver
_FEW = 2**24  # numbers in all fits that are sooner fitted here than by processes that have to begin


@dataclass(frozen=True)
class Machine:
    """One class against the rest."""

    weight: Float[np.ndarray, "d"]
    """Normal of the hyperplane."""

    bias: float
    """Its offset."""

    converged: bool
    """Whether the solver reached its tolerance before its last pass."""

    def score(self, vector: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n"]:
        """Signed distance from the hyperplane, times the length of the weights."""
        return vector @ self.weight + self.bias


@dataclass(frozen=True)
class Solver:
    """LIBLINEAR's dual coordinate descent for ½‖w, b‖² + C Σ weight · max(0, 1 − y (w·x + b))²."""

    positive_weight: float
    """Weight of the error of an image that shows the class; that of the others is 1."""

    tolerance: float
    """When it stops."""

    iterations: int
    """Most passes over the images."""

    seed: int
    """Of the order in which it visits images."""

    @property
    def facts(self) -> dict[str, Any]:
        """All that decides what it finds, as plain data."""
        return _KIND | asdict(self)

    def fit(self, vector: Float[np.ndarray, "n d"], mark: Int8[np.ndarray, "n"], cost: float) -> Machine:
        """The machine for one C. Images marked 1 show the class, those marked −1 do not; those marked 0 do not
        count."""
        vector, mark = _without_zeros(vector, mark)
        classifier = LinearSVC(
            **_KIND,
            C=cost,
            tol=self.tolerance,
            max_iter=self.iterations,
            class_weight={1: self.positive_weight, -1: 1.0},
            random_state=self.seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # told by `converged` instead
            classifier.fit(vector, mark)
        passes = int(classifier.n_iter_)
        return Machine(classifier.coef_[0], float(np.ravel(classifier.intercept_)[0]), passes < self.iterations)

    def held_out(
        self, vector: Float[np.ndarray, "n d"], mark: Int8[np.ndarray, "n"], cost: float, folds: int
    ) -> tuple[float, int]:
        """Mean of scikit-learn's average precision over stratified folds, each judged by the machine of the others, as
        `cross_val_score` gives it; and how many of the machines did not converge."""
        vector, mark = _without_zeros(vector, mark)
        precision, failed = [], 0
        for rest, own in StratifiedKFold(folds).split(vector, mark):
            machine = self.fit(vector[rest], mark[rest], cost)
            precision.append(average_precision_score(mark[own], machine.score(vector[own])))
            failed += not machine.converged
        return float(np.mean(precision)), failed

    def machines(
        self,
        vector: Float[np.ndarray, "n d"],
        rows: Int[np.ndarray, "r"],
        mark: Int8[np.ndarray, "r"],
        costs: Sequence[float],
    ) -> list[Machine]:
        """The machine of each C on some of the images."""
        some = vector[rows]
        return [self.fit(some, mark, cost) for cost in costs]

    def chosen(
        self,
        vector: Float[np.ndarray, "n d"],
        rows: Int[np.ndarray, "r"],
        mark: Int8[np.ndarray, "r"],
        costs: Sequence[float],
        folds: int,
    ) -> list[Machine]:
        """The one machine on some of the images whose C is best on folds of them; of equal ones the first."""
        some = vector[rows]
        found = [self.held_out(some, mark, cost, folds)[0] for cost in costs] if len(costs) > 1 else [0.0]
        return [self.fit(some, mark, costs[int(np.argmax(found))])]


def _without_zeros(
    vector: Float[np.ndarray, "n d"], mark: Int8[np.ndarray, "n"]
) -> tuple[Float[np.ndarray, "k d"], Int8[np.ndarray, "k"]]:
    return (vector, mark) if mark.all() else (vector[mark != 0], mark[mark != 0])


def processes_for(numbers: int, fits: int) -> int:
    """How many processes fit at once `fits` machines on matrices of so many numbers: 1 where that is little work, else
    all cores, as far as the memory that is free allows."""
    if numbers * fits < _FEW:
        return 1
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # no such thing on this system
        free = 2**62
    return max(1, min(joblib.cpu_count(), fits, int(0.8 * free) // (numbers * _BYTES)))


def in_parallel(tasks: Iterable[tuple[Any, ...]], processes: int) -> Iterator[Any]:
    """What (function, argument, …) of each task gives, in order. The results do not depend on how many processes
    there are: each fit sets the seed of the solver, which every process has for itself."""
    calls = (joblib.delayed(function)(*arguments) for function, *arguments in tasks)
    return iter(joblib.Parallel(n_jobs=processes, return_as="generator")(calls))
