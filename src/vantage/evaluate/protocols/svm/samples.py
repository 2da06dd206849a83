"""Linear SVMs on samples of a few images of each class: what both low-shot protocols do.

n: images   m: test images   r: images drawn   c: classes   v: values of C   d: width of the features
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import sklearn
import torch
from jaxtyping import Float, Int, Int8
from torch import Tensor

from vantage import draws
from vantage.data.sources.source import Source, cache_key
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.svm.deepest import MarkedFeatures, deepest, marked
from vantage.evaluate.protocols.svm.solver import Machine, Solver, in_parallel, processes_for
from vantage.evaluate.protocols.svm.svm import check_classes, how_of
from vantage.frozen.encoder import FrozenEncoder
from vantage.measures.average_precision import average_precision
from vantage.storage.cache import hash_of
from vantage.storage.results import CachedResults

__all__ = ["Judged", "SamplePlan", "few_images", "judge"]

_DRAW = 0x10E5  # what a seed is for


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
class SamplePlan:
    """What the two protocols do."""

    shots: tuple[int, ...]
    """Images of the class, for each k."""
    samples: int
    """How often each k is drawn."""
    negatives: int
    """Images of other classes for each image of the class."""
    seed: int
    """Of the draws."""
    costs: tuple[float, ...]
    """C of the machines."""
    choice: tuple[int, float] | tuple[()]
    """Folds, and C where k is 1; () for machines of every C."""
    solver: Solver
    """What fits the machines."""

    def task(self, known: MarkedFeatures, k: int, sample: int, number: int) -> tuple[Any, ...]:
        """The machines of one class on one sample."""
        seed = draws.mix(self.seed, _DRAW, k, sample, number)
        rows = few_images(known.mark[:, number], k, self.negatives, seed)
        drawn = known.vector.numpy(), rows.numpy(), known.mark[rows, number].numpy()
        if not self.choice:
            return (self.solver.machines, *drawn, self.costs)
        folds, alone = self.choice
        return (self.solver.chosen, *drawn, self.costs if k > 1 else (alone,), min(folds, k))


class Judged(NamedTuple):
    """What came of it."""

    precision: dict[tuple[int, int], Float[Tensor, "c v"]]
    """Of each k and sample the average precision, in percent, of every class and machine."""
    train_images: int
    """Training images to draw from."""
    test_images: int
    """Test images."""
    features: str
    """Which features they have."""
    how: dict[str, Any]
    """How they are seen, and what fits the machines."""


def judge(plan: SamplePlan, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Judged:
    """Draw, fit and judge every sample; those that are done are read from the cache."""
    seen, words = deepest(encoder)
    known, asked = marked(seen, train, work), marked(seen, test, work)
    check_classes(known, known.mark, asked, asked.mark, 1)
    _enough(plan, known)
    facts = (seen.digest(), repr(seen.view), cache_key(train), cache_key(test), repr(plan))
    facts += (sklearn.__version__, work.resolved_device().type)
    kept = work.cache / "lowshot" / f"{hash_of(fact.encode() for fact in facts)}.json"
    done = CachedResults(kept)
    pairs = [(k, sample) for k in plan.shots for sample in range(plan.samples)]
    left = [pair for pair in pairs if f"{pair[0]}/{pair[1]}" not in done]
    classes = len(known.classes)
    machines = _machines(plan, known, left)
    query, before = asked.vector.double(), (len(pairs) - len(left)) * classes
    work.progress.start("SVMs on few images", len(pairs) * classes, before)
    for pair in left:
        table = []
        for number in range(classes):
            table.append(_precisions(next(machines), query, asked.mark[:, number]))
            before += 1
            work.progress.advance(before, f"{pair[0]} images of each class")
        done.add(f"{pair[0]}/{pair[1]}", table)
    work.progress.stop()
    found = {pair: torch.tensor(done[f"{pair[0]}/{pair[1]}"], dtype=torch.float64) for pair in pairs}
    return Judged(found, len(known.mark), len(asked.mark), words, how_of(seen, plan.solver))


def _machines(plan: SamplePlan, known: MarkedFeatures, left: Iterable[tuple[int, int]]) -> Iterator[list[Machine]]:
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


def _enough(plan: SamplePlan, known: MarkedFeatures) -> None:
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
