"""Logistic regression on cached features: fast, but without the random crops of the published protocols.

n: images   q: test images   d: width of the features   c: classes   t: guesses per image
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage import processes
from vantage.data.sources.source import Source
from vantage.data.splits import LabeledSplit, hold_out_mask
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.labeled_features import LabeledFeatures, labeled_features
from vantage.measures.accuracy import accuracy, best_classes
from vantage.processes.sharing import own_slice
from vantage.progress import task

__all__ = ["LinearCached", "Logistic", "fit_logistic"]

_HELD_OUT = 0.1
"""Share of each class of the training images that is held out to choose the penalty."""

_SOLVER: dict[str, Any] = {
    "history_size": 10, "tolerance_grad": 1e-7, "tolerance_change": 1e-9, "line_search_fn": "strong_wolfe"
}  # fmt: skip
"""Options of torch's L-BFGS."""

_FLAT = 1e-6
"""A feature whose standard deviation is at most this counts as constant."""

_ROWS = 8192
"""Images whose logits are in memory at once."""


@dataclass(frozen=True)
class LinearCached:
    """Multinomial logistic regression on features of the evaluation view, each standardized over the training images.

    Minimizes mean cross-entropy + l2/2 · ‖weights‖² (biases are not penalized) by L-BFGS with a strong Wolfe line
    search. `l2` is chosen on a tenth of each class of the training images, which is held out; then the classifier is
    fitted to all training images. There are no random crops or flips, so the numbers do not compare with those of the
    published protocols: report them under this protocol's name.
    """

    name: ClassVar[str] = "linear-cached"
    version: ClassVar[int] = 1

    l2: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    """Penalties to choose from; with only one, nothing is held out."""
    iterations: int = 200
    """Maximum number of iterations of L-BFGS in each fit."""
    seed: int = 0
    """Seed of the choice of images that are held out."""

    def __post_init__(self) -> None:
        if not self.l2 or not all(0 <= l2 < math.inf for l2 in self.l2) or self.iterations < 1:
            raise UserError(
                f"linear evaluation on cached features: l2 is {self.l2} and iterations is {self.iterations};"
                " give one or more finite penalties, none below 0, and at least 1 iteration"
            )

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Fit on `train`, score on `test`."""
        images = LabeledSplit.of(train, test, work.progress)
        bank, queries = (labeled_features(encoder, source, work) for source in (images.train, images.test))
        guess, choice = self.guesses(bank, queries.vector, images.classes, work)
        solver = _SOLVER | {"max_eval": _evaluations(self.iterations)}
        how = {"solver": solver, "held_out_to_choose": _HELD_OUT, "features_of_less_deviation_are_left_out": _FLAT}
        measures = accuracy(guess, queries.label, images.trained_classes).measures()
        return Outcome(measures, bank.count, queries.count, choice, how=how)

    def guesses(
        self, bank: LabeledFeatures, query: Float[Tensor, "q d"], classes: int, work: Work
    ) -> tuple[Int[Tensor, "q t"], dict[str, float | int | str | list[float]]]:
        """The five likeliest classes of each query (fewer if there are fewer), best first, by a classifier fitted to
        the features in `bank`; and the penalty, with how it was chosen."""
        mean, deviation = bank.vector.mean(0), bank.vector.std(0, correction=0)
        scale = torch.where(deviation > _FLAT, deviation, 1.0)  # a constant feature becomes 0
        vector = (bank.vector - mean) / scale
        best, choice = self._choose(vector, bank.label, classes, work)
        model = fit_logistic(vector, bank.label, classes, best, self.iterations, shared=True)
        return model.predict((query - mean) / scale), choice

    def _choose(
        self, vector: Float[Tensor, "n d"], label: Int[Tensor, "n"], classes: int, work: Work
    ) -> tuple[float, dict[str, float | int | str | list[float]]]:
        if len(self.l2) == 1:
            return self.l2[0], {"l2": self.l2[0], "by": "the protocol"}
        instead = "a single penalty (--l2 0.01)"
        mask = hold_out_mask(label.cpu(), _HELD_OUT, self.seed, instead).to(label.device)
        accuracy_of: dict[int, float] = {}
        start: Logistic | None = None
        with task(work.progress, "logistic regressions", len(self.l2)):
            # From strong to weak, each from the last solution: strong penalties are quick, and solutions lie close.
            for number, index in enumerate(sorted(range(len(self.l2)), key=lambda index: -self.l2[index])):
                rows = vector[~mask], label[~mask]
                start = fit_logistic(*rows, classes, self.l2[index], self.iterations, start, shared=True)
                accuracy_of[index] = accuracy(start.predict(vector[mask]), label[mask], classes).top1
                work.progress.advance(number + 1)
        accuracies = [accuracy_of[index] for index in range(len(self.l2))]
        best = max(range(len(self.l2)), key=lambda index: (accuracies[index], self.l2[index]))
        by = f"accuracy on {int(mask.sum())} training images held out"
        return self.l2[best], {
            "l2": self.l2[best],
            "by": by,
            "penalties": list(self.l2),
            "held_out_accuracy": accuracies,
        }


@dataclass(frozen=True)
class Logistic:
    """A softmax classifier."""

    weight: Float[Tensor, "c d"]
    """Weights of each class."""

    bias: Float[Tensor, "c"]
    """Bias of each class."""

    def predict(self, vector: Float[Tensor, "n d"]) -> Int[Tensor, "n t"]:
        """The five likeliest classes (fewer if there are fewer), best first."""
        return torch.cat([best_classes(part @ self.weight.T + self.bias) for part in vector.split(_ROWS)])


def fit_logistic(
    vector: Float[Tensor, "n d"],
    label: Int[Tensor, "n"],
    classes: int,
    l2: float,
    iterations: int = 200,
    start: Logistic | None = None,
    *,
    shared: bool = False,
) -> Logistic:
    """Minimize mean cross-entropy + l2/2 · ‖weights‖² by L-BFGS, starting at zero or at an earlier fit.

    Loss and gradient are summed over a few thousand images at a time, so the logits of all images are never in memory.
    If `shared`, every process of a run must call it with the same images: each computes its share of the sums, so the
    fit differs from that of one process by rounding.
    """
    if start is None:
        start = Logistic(vector.new_zeros(classes, vector.shape[1]), vector.new_zeros(classes))
    weight, bias = (tensor.clone().requires_grad_() for tensor in (start.weight, start.bias))
    parts, most = [weight, bias], _evaluations(iterations)
    optimizer = torch.optim.LBFGS(parts, max_iter=iterations, max_eval=most, **_SOLVER)
    count, shared = len(vector), shared and len(vector) >= processes.count()
    rows = own_slice(count) if shared else slice(None)
    vector, label = vector[rows], label[rows]
    own_l2 = 0.0 if shared and processes.rank() else l2  # one process adds the penalty

    @torch.no_grad()
    def loss_with_gradient() -> Tensor:
        weight.grad, bias.grad = own_l2 * weight, torch.zeros_like(bias)
        loss = own_l2 / 2 * weight.square().sum()
        for part, target in zip(vector.split(_ROWS), label.split(_ROWS), strict=True):
            loss = loss + _add_gradient(weight, bias, part, target, count)
        if shared:
            processes.add_up([loss, weight.grad, bias.grad])
        return loss

    optimizer.step(loss_with_gradient)
    return Logistic(weight.detach(), bias.detach())


def _add_gradient(weight: Tensor, bias: Tensor, vector: Tensor, label: Tensor, count: int) -> Tensor:
    """What some of `count` images add to the mean cross-entropy; its gradient is added to that of the parameters."""
    assert weight.grad is not None and bias.grad is not None
    logarithm = torch.addmm(bias, vector, weight.T).log_softmax(1)
    loss = -logarithm.gather(1, label[:, None]).sum() / count
    error = logarithm.exp_()
    error[torch.arange(len(label), device=label.device), label] -= 1
    error /= count
    weight.grad.addmm_(error.T, vector)
    bias.grad.add_(error.sum(0))
    return loss


def _evaluations(iterations: int) -> int:
    """Maximum number of passes of one fit over all images: torch's own default."""
    return iterations * 5 // 4
