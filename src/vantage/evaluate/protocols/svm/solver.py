"""Linear support vector machines by scikit-learn, on all cores.

Nothing here needs torch: worker processes import this module, and should not wait for torch. scikit-learn brings SciPy
and, if it is installed, pandas: together they take longer to import than torch, so only a fit imports them.

n: images   k: images that are not left out   r: images of a sample   d: width of the features   w: d + 2
"""

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

import joblib
import numpy as np
from jaxtyping import Float, Int, Int8

__all__ = ["Machine", "Solver", "in_parallel", "processes_for", "version_of_solver"]

_KIND: dict[str, Any] = {"penalty": "l2", "loss": "squared_hinge", "dual": True}
_BYTES = 28  # per number during a fit: as float32, as float64, and in a node of the solver
_FEW = 2**24  # up to this many numbers in all fits, one process is faster than starting several


@dataclass(frozen=True)
class Machine:
    """A linear SVM of one class against the rest."""

    weight: Float[np.ndarray, "d"]
    """Normal of the hyperplane."""

    bias: float
    """Its offset."""

    converged: bool
    """Whether the solver reached its tolerance before its last pass."""

    def score(self, vector: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n"]:
        """Signed distance from the hyperplane, times the length of the weights."""
        return vector @ self.weight + self.bias

    def row(self) -> Float[np.ndarray, "w"]:
        """Weights, bias and convergence as one row of numbers."""
        return np.array([*self.weight, self.bias, self.converged])

    @classmethod
    def of_row(cls, row: Float[np.ndarray, "w"]) -> "Machine":
        """The machine of such a row."""
        return cls(row[:-2], float(row[-2]), bool(row[-1]))


@dataclass(frozen=True)
class Solver:
    """LIBLINEAR's dual coordinate descent for ½‖w, b‖² + C Σ weight · max(0, 1 − y (w·x + b))²."""

    positive_weight: float
    """Weight of the errors on images that show the class; 1 for the others."""

    tolerance: float
    """Tolerance at which it stops."""

    iterations: int
    """Maximum number of passes over the images."""

    seed: int
    """Seed of the order in which it visits images."""

    @property
    def facts(self) -> dict[str, Any]:
        """Everything that decides the solution, as plain data."""
        return _KIND | asdict(self)

    def fit(self, vector: Float[np.ndarray, "n d"], mark: Int8[np.ndarray, "n"], cost: float) -> Machine:
        """The SVM for one C. Images marked 1 show the class, those marked −1 do not; those marked 0 are left out."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

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
            warnings.simplefilter("ignore", ConvergenceWarning)  # `converged` reports it
            classifier.fit(vector, mark)
        passes = int(classifier.n_iter_)
        return Machine(classifier.coef_[0], float(np.ravel(classifier.intercept_)[0]), passes < self.iterations)

    def cross_validate(
        self, vector: Float[np.ndarray, "n d"], mark: Int8[np.ndarray, "n"], cost: float, folds: int
    ) -> tuple[float, int]:
        """Mean of scikit-learn's average precision over stratified folds, each ranked by an SVM that was fitted to the
        others, as in `cross_val_score`; and how many of these SVMs did not converge."""
        from sklearn.metrics import average_precision_score
        from sklearn.model_selection import StratifiedKFold

        vector, mark = _without_zeros(vector, mark)
        precision, failures = [], 0
        for rest, fold in StratifiedKFold(folds).split(vector, mark):
            machine = self.fit(vector[rest], mark[rest], cost)
            precision.append(average_precision_score(mark[fold], machine.score(vector[fold])))
            failures += not machine.converged
        return float(np.mean(precision)), failures

    def fit_each(
        self,
        vector: Float[np.ndarray, "n d"],
        rows: Int[np.ndarray, "r"],
        mark: Int8[np.ndarray, "r"],
        costs: Sequence[float],
    ) -> list[Machine]:
        """The SVM for each C on some of the images."""
        sample = vector[rows]
        return [self.fit(sample, mark, cost) for cost in costs]

    def fit_best(
        self,
        vector: Float[np.ndarray, "n d"],
        rows: Int[np.ndarray, "r"],
        mark: Int8[np.ndarray, "r"],
        costs: Sequence[float],
        folds: int,
    ) -> list[Machine]:
        """The SVM on some of the images with the C that is best on folds of them; the first, if several tie."""
        sample = vector[rows]
        scores = [self.cross_validate(sample, mark, cost, folds)[0] for cost in costs] if len(costs) > 1 else [0.0]
        return [self.fit(sample, mark, costs[int(np.argmax(scores))])]


def _without_zeros(
    vector: Float[np.ndarray, "n d"], mark: Int8[np.ndarray, "n"]
) -> tuple[Float[np.ndarray, "k d"], Int8[np.ndarray, "k"]]:
    return (vector, mark) if mark.all() else (vector[mark != 0], mark[mark != 0])


def version_of_solver() -> str:
    """The version of scikit-learn, on which solutions may depend."""
    return metadata.version("scikit-learn")


def processes_for(numbers: int, fits: int) -> int:
    """How many processes fit `fits` SVMs on matrices of `numbers` numbers: 1 if that is little work, else one per
    core, as far as the free memory allows."""
    if numbers * fits < _FEW:
        return 1
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system reports it
        free = 2**62
    return max(1, min(joblib.cpu_count(), fits, int(0.8 * free) // (numbers * _BYTES)))


def in_parallel(tasks: Iterable[tuple[Any, ...]], processes: int) -> Iterator[Any]:
    """Results of tasks (function, argument, …), in order. They do not depend on the number of processes: each fit seeds
    its own solver."""
    calls = (joblib.delayed(function)(*arguments) for function, *arguments in tasks)
    return iter(joblib.Parallel(n_jobs=processes, return_as="generator")(calls))
