"""Linear SVMs on a few images of each class: how little a representation needs.

n: images   m: test images   r: images drawn   c: classes   v: values of C   d: width of the features
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import sklearn
import torch
from jaxtyping import Float, Int, Int8
from torch import Tensor

from vantage import draws
from vantage.data.cache import read_json, try_write_json
from vantage.data.source import Source, cache_key, hash_of
from vantage.embedding import Work
from vantage.errors import UserError
from vantage.evaluate.average_precision import average_precision
from vantage.evaluate.deepest import MarkedFeatures, deepest, marked
from vantage.evaluate.outcome import Outcome
from vantage.evaluate.svm import SVM, Costs, check_classes, costs_of
from vantage.linear_svm import Machine, in_parallel, processes_for
from vantage.trained import Trained

__all__ = ["LowShot", "LowShotChosen", "few_images"]

_DRAW = 0x10E5  # what a seed is for
_SOLVER = SVM().solver


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
    seed: int = 0
    """Of the images drawn."""

    def __post_init__(self) -> None:
        _check(self.name, self.shots, self.samples, self.negatives)
        costs_of(self.costs)

    def __call__(self, trained: Trained, train: Source, test: Source, work: Work) -> Outcome:
        """Fit on samples of `train`, count on `test`. Samples that are done are kept in the cache, so that a stopped
        evaluation goes on."""
        costs = costs_of(self.costs)
        plan = _Plan(self.shots, self.samples, self.negatives, self.seed, costs, ())
        images, found = _judge(plan, trained, train, test, work)
        curve: dict[int, list[float]] = {}
        chosen: list[float] = []
        for k in self.shots:
            by_sample = torch.stack([found[k, sample].mean(0) for sample in range(self.samples)])
            place = int(by_sample.mean(0).argmax())
            curve[k] = by_sample[:, place].tolist()
            chosen.append(costs[place])
        by = "the best mean average precision on the TEST images, for every k (oracle-C)"
        return _outcome("oracle-C mAP", curve, {"cost": chosen, "by": by, "costs": list(costs)}, images)


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
    seed: int = 0
    """Of the images drawn."""

    def __post_init__(self) -> None:
        _check(self.name, self.shots, self.samples, self.negatives)
        costs_of(self.costs)
        if self.folds < 2 or not 0 < self.cost_of_one < math.inf:
            raise UserError(
                f"{self.name}: folds is {self.folds} and cost_of_one {self.cost_of_one}; give at least 2 folds and a"
                " cost above 0"
            )

    def __call__(self, trained: Trained, train: Source, test: Source, work: Work) -> Outcome:
        """Fit on samples of `train`, count on `test`. Samples that are done are kept in the cache, so that a stopped
        evaluation goes on."""
        costs = costs_of(self.costs)
        folds = (self.folds, self.cost_of_one)
        plan = _Plan(self.shots, self.samples, self.negatives, self.seed, costs, folds)
        images, found = _judge(plan, trained, train, test, work)
        curve = {k: [float(found[k, sample].mean()) for sample in range(self.samples)] for k in self.shots}
        by = f"average precision on up to {self.folds} folds of the images drawn, for every sample and class"
        return _outcome("mAP", curve, {"by": by, "costs": list(costs)}, images)


def few_images(mark: Int8[Tensor, "n"], k: int, negatives: int, seed: int) -> Int[Tensor, "r"]:
    """The numbers of k images marked 1, and of `negatives` · k of those marked −1, drawn with `seed`.

    Raises `UserError` where there are fewer.
    """
    generator, drawn = torch.Generator().manual_seed(seed), []
    for wanted, count, words in ((1, k, "with"), (-1, negatives * k, "without")):
        there = (mark == wanted).nonzero().squeeze(1)
        if len(there) < count:
            raise UserError(f"{count} images {words} a class were asked for, but there are {len(there)}")
        drawn.append(there[torch.randperm(len(there), generator=generator)[:count]])
    return torch.cat(drawn)


@dataclass(frozen=True)
class _Plan:
    """What the two protocols do."""

    shots: tuple[int, ...]
    samples: int
    negatives: int
    seed: int
    costs: tuple[float, ...]
    choice: tuple[int, float] | tuple[()]
    """Folds, and C where k is 1; () for machines of every C."""

    def task(self, known: MarkedFeatures, k: int, sample: int, number: int) -> tuple[Any, ...]:
        """The machines of one class on one sample."""
        seed = draws.mix(self.seed, _DRAW, k, sample, number)
        rows = few_images(known.mark[:, number], k, self.negatives, seed)
        drawn = known.vector.numpy(), rows.numpy(), known.mark[rows, number].numpy()
        if not self.choice:
            return (_SOLVER.machines, *drawn, self.costs)
        folds, alone = self.choice
        return (_SOLVER.chosen, *drawn, self.costs if k > 1 else (alone,), min(folds, k))


def _judge(
    plan: _Plan, trained: Trained, train: Source, test: Source, work: Work
) -> tuple[tuple[int, int, str], dict[tuple[int, int], Float[Tensor, "c v"]]]:
    """How many images there are, which features they have, and of each k and sample the average precision, in per
    cent, of every class and machine."""
    seen, words = deepest(trained)
    known, asked = marked(seen, train, work), marked(seen, test, work)
    check_classes(known, known.mark, asked, asked.mark, 1)
    _enough(plan, known)
    facts = (seen.digest(), repr(seen.view), cache_key(train), cache_key(test), repr((plan, _SOLVER)))
    kept = work.cache / "lowshot" / f"{hash_of(fact.encode() for fact in (*facts, sklearn.__version__))}.json"
    stored = read_json(kept)
    done: dict[str, Any] = stored if isinstance(stored, dict) else {}
    pairs = [(k, sample) for k in plan.shots for sample in range(plan.samples)]
    left = [pair for pair in pairs if f"{pair[0]}/{pair[1]}" not in done]
    classes = len(known.classes)
    machines = _machines(plan, known, left)
    query, before = asked.vector.double(), (len(pairs) - len(left)) * classes
    work.teller.start("SVMs on few images", len(pairs) * classes, before)
    for pair in left:
        table = []
        for number in range(classes):
            table.append(_precisions(next(machines), query, asked.mark[:, number]))
            before += 1
            work.teller.advance(before, f"{pair[0]} images of each class")
        done[f"{pair[0]}/{pair[1]}"] = table
        try_write_json(kept, done)
    work.teller.stop()
    images = (len(known.mark), len(asked.mark), words)
    return images, {pair: torch.tensor(done[f"{pair[0]}/{pair[1]}"], dtype=torch.float64) for pair in pairs}


def _machines(plan: _Plan, known: MarkedFeatures, left: Iterable[tuple[int, int]]) -> Iterator[list[Machine]]:
    """The machines of every sample and class, in order."""
    todo = [(k, sample, number) for k, sample in left for number in range(len(known.classes))]
    largest = max(plan.shots) * (1 + plan.negatives) * known.vector.shape[1]
    fits = len(todo) * len(plan.costs)
    return in_parallel((plan.task(known, *one) for one in todo), processes_for(largest, fits) if todo else 1)


def _precisions(machines: list[Machine], query: Float[Tensor, "m d"], mark: Int8[Tensor, "m"]) -> list[float]:
    counted = mark != 0
    weight = torch.from_numpy(np.stack([machine.weight for machine in machines], 1))
    score = query[counted] @ weight  # the bias does not change an order
    return [100.0 * average_precision(one, mark[counted] == 1) for one in score.T]


def _enough(plan: _Plan, known: MarkedFeatures) -> None:
    """Raises `UserError` where a class has too few images for the largest k."""
    most = [
        min(int((one == 1).sum()), int((one == -1).sum()) // plan.negatives if plan.negatives else len(one))
        for one in known.mark.T
    ]
    least = min(most)
    if least >= max(plan.shots):
        return
    number = most.index(least)
    with_it, without = (int((known.mark[:, number] == sign).sum()) for sign in (1, -1))
    fitting = " ".join(str(k) for k in plan.shots if k <= least)
    raise UserError(
        f"{max(plan.shots)} images with and {plan.negatives * max(plan.shots)} without each class were asked for, but"
        f" of {known.classes[number]} there are {with_it} with and {without} without it: "
        + (f"ask for --shots {fitting}" if fitting else "give more images")
        + ", or for fewer --negatives"
    )


def _check(name: str, shots: tuple[int, ...], samples: int, negatives: int) -> None:
    if not shots or min(shots) < 1 or len(set(shots)) < len(shots) or samples < 1 or negatives < 1:
        raise UserError(
            f"{name}: shots is {shots}, samples {samples} and negatives {negatives}; give different values of k, and"
            " none of the numbers below 1"
        )


def _outcome(
    name: str, curve: Mapping[int, list[float]], chosen: dict[str, Any], images: tuple[int, int, str]
) -> Outcome:
    mean = {k: sum(values) / len(values) for k, values in curve.items()}
    measures = {name: sum(mean.values()) / len(mean), **{f"k={k}": value for k, value in mean.items()}}
    details = {"features": images[2], "shots": {str(k): values for k, values in curve.items()}}
    return Outcome(measures, images[0], images[1], chosen, details)
