"""Logistic regression on cached features: fast, but without the crops of the published protocols.

n: images   d: width of the features   c: classes   p: parameters
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage.data.sources.source import Source
from vantage.data.splits import check_classes, held_out, with_labels
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.features import labeled
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder
from vantage.measures.accuracy import accuracy, best_classes

__all__ = ["LinearCached", "Logistic", "fit_logistic"]

_HELD_OUT = 0.1
"""Share of each class of the training images that chooses."""

_SOLVER: dict[str, Any] = {
    "history_size": 10, "tolerance_grad": 1e-7, "tolerance_change": 1e-9, "line_search_fn": "strong_wolfe"
}  # fmt: skip
"""How torch's L-BFGS works."""

_FLAT = 1e-6
"""A feature whose standard deviation is not above this never changes."""

_ROWS = 8192
"""Images whose logits are in memory at once."""


@dataclass(frozen=True)
class LinearCached:
    """Multinomial logistic regression on features of the evaluation view, each standardized by the training images.

    Minimizes mean cross-entropy + l2/2 · ‖weights‖² (biases are free) by L-BFGS with a strong Wolfe line search. A
    tenth of each class of the training images is held out and chooses `l2`; then all of the training images are
    fitted with it. No crops and flips, so its numbers are not those of the published protocols: name it with them.
    """

    name: ClassVar[str] = "linear-cached"
    version: ClassVar[int] = 1

    l2: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    """Penalties to choose from; with one, nothing is held out."""
    iterations: int = 200
    """Most iterations of L-BFGS for each fit."""
    seed: int = 0
    """Of the images held out."""

    def __post_init__(self) -> None:
        if not self.l2 or not all(0 <= l2 < math.inf for l2 in self.l2) or self.iterations < 1:
            raise UserError(
                f"linear evaluation on cached features: l2 is {self.l2} and iterations {self.iterations};"
                " give at least one finite penalty, none below 0, and 1 iteration or more"
            )

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Fit on `train`, count on `test`."""
        check_classes(with_labels(train)[1], with_labels(test)[1], test.classes, work.progress)
        known, asked = labeled(encoder, train, work), labeled(encoder, test, work)
        classes = max(known.classes, asked.classes)
        mean, deviation = known.vector.mean(0), known.vector.std(0, correction=0)
        scale = torch.where(deviation > _FLAT, deviation, 1.0)  # a feature that never changes stays 0
        vector, query = (known.vector - mean) / scale, (asked.vector - mean) / scale
        best, chosen = self._choose(vector, known.label, classes, work)
        model = fit_logistic(vector, known.label, classes, best, self.iterations)
        guess = model.predict(query)
        solver = _SOLVER | {"max_eval": _evaluations(self.iterations)}
        how = {"solver": solver, "held_out_to_choose": _HELD_OUT, "features_of_less_deviation_are_left_out": _FLAT}
        return Outcome(accuracy(guess, asked.label, classes).measures(), known.count, asked.count, chosen, how=how)

    def _choose(
        self, vector: Float[Tensor, "n d"], label: Int[Tensor, "n"], classes: int, work: Work
    ) -> tuple[float, dict[str, float | int | str | list[float]]]:
        if len(self.l2) == 1:
            return self.l2[0], {"l2": self.l2[0], "by": "the protocol"}
        held = held_out(label.cpu(), _HELD_OUT, self.seed).to(label.device)
        found: dict[int, float] = {}
        start: Logistic | None = None
        work.progress.start("logistic regressions", len(self.l2))
        # From strong to weak, each from the one before: neighbors are near, and the strong ones are quick.
        for number, place in enumerate(sorted(range(len(self.l2)), key=lambda place: -self.l2[place])):
            start = fit_logistic(vector[~held], label[~held], classes, self.l2[place], self.iterations, start)
            found[place] = accuracy(start.predict(vector[held]), label[held], classes).top1
            work.progress.advance(number + 1)
        work.progress.stop()
        accuracies = [found[place] for place in range(len(self.l2))]
        best = max(range(len(self.l2)), key=lambda place: (accuracies[place], self.l2[place]))
        by = f"accuracy on {int(held.sum())} training images held out"
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
        """The first five classes (fewer where there are fewer), best first."""
        return torch.cat([best_classes(part @ self.weight.T + self.bias) for part in vector.split(_ROWS)])


def fit_logistic(
    vector: Float[Tensor, "n d"],
    label: Int[Tensor, "n"],
    classes: int,
    l2: float,
    iterations: int = 200,
    start: Logistic | None = None,
) -> Logistic:
    """Minimize mean cross-entropy + l2/2 · ‖weights‖² by L-BFGS, from zero or from an earlier fit.

    Loss and gradient are summed over some thousand images at a time, so logits never exist for all of them.
    """
    if start is None:
        start = Logistic(vector.new_zeros(classes, vector.shape[1]), vector.new_zeros(classes))
    weight, bias = (tensor.clone().requires_grad_() for tensor in (start.weight, start.bias))
    parts, most = [weight, bias], _evaluations(iterations)
    optimizer = torch.optim.LBFGS(parts, max_iter=iterations, max_eval=most, **_SOLVER)

    @torch.no_grad()
    def loss_with_gradient() -> Tensor:
        weight.grad, bias.grad = l2 * weight, torch.zeros_like(bias)
        loss = l2 / 2 * weight.square().sum()
        for part, wanted in zip(vector.split(_ROWS), label.split(_ROWS), strict=True):
            logarithm = torch.addmm(bias, part, weight.T).log_softmax(1)
            loss = loss - logarithm.gather(1, wanted[:, None]).sum() / len(vector)
            error = logarithm.exp_()
            error[torch.arange(len(wanted), device=wanted.device), wanted] -= 1
            error /= len(vector)
            weight.grad.addmm_(error.T, part)
            bias.grad.add_(error.sum(0))
        return loss

    optimizer.step(loss_with_gradient)
    return Logistic(weight.detach(), bias.detach())


def _evaluations(iterations: int) -> int:
    """Most times that a fit looks at all images: what torch takes where nobody says."""
    return iterations * 5 // 4
