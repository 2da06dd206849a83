"""Linear SVMs on samples of a few images of each class: the work of both low-shot protocols.

n: images   m: test images   r: images of a sample   c: classes   v: values of C   d: width of the features   w: d + 2
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float64, Int, Int8
from torch import Tensor

from vantage import draws
from vantage.data.sources.source import Source, cache_key
from vantage.encoding import Work
from vantage.errors import UserError, quantity
from vantage.evaluate.protocols.svm.deepest import MarkedFeatures, deepest, marked_features
from vantage.evaluate.protocols.svm.shared_fits import missing_on_all, shared_fits
from vantage.evaluate.protocols.svm.solver import Machine, Solver, version_of_solver
from vantage.evaluate.protocols.svm.svm import check_classes, how_of
from vantage.frozen.encoder import FrozenEncoder
from vantage.measures.average_precision import average_precision
from vantage.progress import task
from vantage.storage.cache import hash_of
from vantage.storage.results import CachedResults

__all__ = ["SamplePlan", "SampleResults", "evaluate_samples", "few_images"]


def few_images(mark: Int8[Tensor, "n"], k: int, negatives: int, seed: int) -> Int[Tensor, "r"]:
    """The numbers of k images marked 1, and of `negatives` · k of those marked −1, drawn with `seed`.

    Raises `UserError` if there are fewer.
    """
    generator, rows = torch.Generator().manual_seed(seed), []
    for sign, count, words in ((1, k, "with"), (-1, negatives * k, "without")):
        numbers = (mark == sign).nonzero().squeeze(1)
        if len(numbers) < count:
            raise UserError(f"a sample needs {quantity(count, 'image')} {words} a class, but there are {len(numbers)}")
        rows.append(numbers[torch.randperm(len(numbers), generator=generator)[:count]])
    return torch.cat(rows)


@dataclass(frozen=True)
class SamplePlan:
    """Which samples are drawn, and which SVMs are fitted on them."""

    shots: tuple[int, ...]
    """Values of k, the number of images with the class."""
    samples: int
    """Samples for each k."""
    negatives: int
    """Images without the class, for each image with it."""
    seed: int
    """Seed of the samples."""
    costs: tuple[float, ...]
    """Values of C."""
    choice: tuple[int, float] | tuple[()]
    """Folds, and C for k = 1; () for SVMs of every C."""
    solver: Solver
    """What fits the SVMs."""

    def task(self, features: MarkedFeatures, k: int, sample: int, number: int) -> tuple[Any, ...]:
        """Fits of one class on one sample, as `in_parallel` runs them."""
        seed = draws.mix(self.seed, draws.Purpose.LOW_SHOT_SAMPLE, k, sample, number)
        rows = few_images(features.mark[:, number], k, self.negatives, seed)
        images = features.vector.numpy(), rows.numpy(), features.mark[rows, number].numpy()
        if not self.choice:
            return (self.solver.fit_each, *images, self.costs)
        folds, cost_of_one = self.choice
        return (self.solver.fit_best, *images, self.costs if k > 1 else (cost_of_one,), min(folds, k))


class SampleResults(NamedTuple):
    """How well the SVMs of every sample do."""

    precision: dict[tuple[int, int], Float[Tensor, "c v"]]
    """Average precision, in percent, of every class and SVM, by k and sample."""
    train_images: int
    """Training images to draw from."""
    test_images: int
    """Test images."""
    features: str
    """The features, in words."""
    how: dict[str, Any]
    """How images are seen, and the solver's settings."""


def evaluate_samples(
    plan: SamplePlan, encoder: FrozenEncoder, train: Source, test: Source, work: Work
) -> SampleResults:
    """Draw, fit and evaluate every sample; finished samples are read from the cache."""
    encoder, words = deepest(encoder)
    train_features, test_features = marked_features(encoder, train, work), marked_features(encoder, test, work)
    check_classes(train_features, train_features.mark, test_features, test_features.mark, 1)
    _check_enough(plan, train_features)
    facts = (encoder.digest(), repr(encoder.view), cache_key(train), cache_key(test), repr(plan))
    facts += (version_of_solver(), work.resolved_device().type)
    results = CachedResults(work.cache / "lowshot" / f"{hash_of(facts)}.json")
    pairs = [(k, sample) for k in plan.shots for sample in range(plan.samples)]
    missing_keys = missing_on_all(results, [_key(pair) for pair in pairs])
    missing = [pair for pair in pairs if _key(pair) in missing_keys]
    classes = len(train_features.classes)
    machines = _machines(plan, train_features, missing)
    query, count = test_features.vector.double(), (len(pairs) - len(missing)) * classes
    with task(work.progress, "SVMs on few images", len(pairs) * classes, count):
        for pair in missing:
            table = []
            for number in range(classes):
                table.append(_precisions(next(machines), query, test_features.mark[:, number]))
                count += 1
                work.progress.advance(count, f"{pair[0]} images of each class")
            results.add(_key(pair), table)
    precision = {pair: torch.tensor(results[_key(pair)], dtype=torch.float64) for pair in pairs}
    how = how_of(encoder, plan.solver)
    return SampleResults(precision, len(train_features.mark), len(test_features.mark), words, how)


def _key(pair: tuple[int, int]) -> str:
    """What the cache calls a sample."""
    k, sample = pair
    return f"{k}/{sample}"


def _machines(plan: SamplePlan, features: MarkedFeatures, pairs: Sequence[tuple[int, int]]) -> Iterator[list[Machine]]:
    """The SVMs of every sample and class, in order."""
    triples = [(k, sample, number) for k, sample in pairs for number in range(len(features.classes))]
    width, machines = features.vector.shape[1], 1 if plan.choice else len(plan.costs)
    size = max(plan.shots) * (1 + plan.negatives) * width
    for rows in shared_fits(
        lambda triple: plan.task(features, *triple), triples, _rows_of, (machines, width + 2),
        size=size, fits=len(plan.costs),
    ):  # fmt: skip
        yield [Machine.of_row(row) for row in rows]


def _rows_of(machines: list[Machine]) -> Float64[np.ndarray, "v w"]:
    return np.stack([machine.row() for machine in machines])


def _precisions(machines: list[Machine], query: Float[Tensor, "m d"], mark: Int8[Tensor, "m"]) -> list[float]:
    clear = mark != 0  # images in which the class is difficult to see do not count
    weight = torch.from_numpy(np.stack([machine.weight for machine in machines], 1))
    scores = query[clear] @ weight  # the bias does not change an order
    return [100.0 * average_precision(score, mark[clear] == 1) for score in scores.T]


def _check_enough(plan: SamplePlan, features: MarkedFeatures) -> None:
    """Raises `UserError` if a class has too few images for the largest k."""
    counts = [(int((mark == 1).sum()), int((mark == -1).sum())) for mark in features.mark.T]
    most = [min(positive, negative // plan.negatives) for positive, negative in counts]
    least = min(most)
    if least >= max(plan.shots):
        return
    number = most.index(least)
    positive, negative = counts[number]
    possible = " ".join(str(k) for k in plan.shots if k <= least)
    needed = f"{quantity(max(plan.shots), 'image')} with each class and {plan.negatives * max(plan.shots)} without it"
    shown = f"{quantity(positive, 'image')} show{'s' * (positive == 1)} {features.classes[number]}"
    raise UserError(
        f"samples need {needed}, but {shown} and {negative} do not: "
        + (f"choose --shots {possible}" if possible else "give more images")
        + ", or fewer --negatives" * any(least < k <= min(map(min, counts)) for k in plan.shots)
    )
