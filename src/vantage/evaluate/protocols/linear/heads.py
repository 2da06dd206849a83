"""Linear classifiers trained side by side on the same features, one for each learning rate.

r: learning rates   b: images of a batch   n: images   d: width of the features   c: classes   t: guesses per image

Each ends as if it had been trained alone: it has its own weights, its own momentum and its own steps of plain SGD.
They share only the features, which are the expensive part. The gradient is written out (softmax minus the one-hot
label), so no graph is built.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vantage.measures.accuracy import best_classes

__all__ = ["Descent", "Heads"]


@dataclass(frozen=True)
class Descent:
    """SGD as torch does it: v ← momentum · v + g + weight_decay · w, then w ← w − lr · v; with Nesterov's momentum
    w ← w − lr · (g + weight_decay · w + momentum · v)."""

    momentum: float = 0.9
    """Share of the velocity that each step keeps, in [0, 1)."""
    weight_decay: float = 0.0
    """L2 penalty of weights and biases, added to the gradient."""
    nesterov: bool = False
    """Whether a step looks ahead along the velocity."""


class Heads:
    """A softmax classifier for each learning rate, known by its position in `learning_rates` (never by its value,
    which may occur twice or be rounded)."""

    weight: Float[Tensor, "r c d"]
    bias: Float[Tensor, "r c"]

    def __init__(
        self,
        weight: Float[Tensor, "c d"],
        bias: Float[Tensor, "c"],
        learning_rates: Sequence[float],
        descent: Descent = Descent(),
    ) -> None:
        """All start at the same `weight` and `bias`."""
        count = len(learning_rates)
        self._descent = descent
        self.weight = weight.expand(count, -1, -1).clone()
        self.bias = bias.expand(count, -1).clone()
        self._learning_rate = torch.tensor(learning_rates, dtype=weight.dtype, device=weight.device)
        self._weight_velocity = torch.zeros_like(self.weight)
        self._bias_velocity = torch.zeros_like(self.bias)

    @torch.no_grad()
    def step(self, features: Float[Tensor, "b d"], label: Int[Tensor, "b"], factor: float) -> None:
        """One step of SGD on the mean cross-entropy, at `factor` times each head's learning rate.

        An empty batch changes nothing.
        """
        if not len(features):
            return
        error = self._logits(features).softmax(2)
        error[:, torch.arange(len(label), device=label.device), label] -= 1
        error /= len(features)
        flat = error.transpose(0, 1).flatten(1)
        weight_gradient = (flat.T @ features).view_as(self.weight)
        learning_rate = factor * self._learning_rate
        weight_step = self._direction(self.weight, weight_gradient, self._weight_velocity)
        bias_step = self._direction(self.bias, error.sum(1), self._bias_velocity)
        self.weight -= learning_rate[:, None, None] * weight_step
        self.bias -= learning_rate[:, None] * bias_step

    def tensors(self) -> dict[str, Tensor]:
        """All tensors that steps change, to be read or written in place."""
        velocities = {"weight velocity": self._weight_velocity, "bias velocity": self._bias_velocity}
        return {"weight": self.weight, "bias": self.bias} | velocities

    @torch.no_grad()
    def accuracies(self, features: Float[Tensor, "n d"], label: Int[Tensor, "n"]) -> list[float]:
        """Share of correct first guesses of each head, in percent; 0 for a head that diverged."""
        return (100.0 * self.count_correct(features, label).double() / len(label)).tolist()

    @torch.no_grad()
    def count_correct(self, features: Float[Tensor, "n d"], label: Int[Tensor, "n"]) -> Int[Tensor, "r"]:
        """How many first guesses of each head are correct; none for a head that diverged."""
        correct = torch.zeros(len(self.bias), dtype=torch.int64, device=features.device)
        for part, target in zip(features.split(1024), label.split(1024), strict=True):
            logits = self._logits(part)
            correct += ((logits.argmax(2) == target) & self.finite[:, None]).sum(1)
        return correct

    @torch.no_grad()
    def predict(self, head: int, features: Float[Tensor, "n d"]) -> Int[Tensor, "n t"]:
        """The five likeliest classes (fewer if there are fewer) by one head, best first."""
        scores = (part @ self.weight[head].T + self.bias[head] for part in features.split(4096))
        return torch.cat([best_classes(score) for score in scores])

    def _direction(self, value: Tensor, gradient: Tensor, velocity: Tensor) -> Tensor:
        """What a step subtracts at learning rate 1; the velocity is updated."""
        descent = self._descent
        if descent.weight_decay:
            gradient = gradient + descent.weight_decay * value
        velocity.mul_(descent.momentum).add_(gradient)
        return gradient + descent.momentum * velocity if descent.nesterov else velocity

    def _logits(self, features: Float[Tensor, "b d"]) -> Float[Tensor, "r b c"]:
        flat = features @ self.weight.flatten(0, 1).T
        return flat.unflatten(1, self.bias.shape).transpose(0, 1) + self.bias[:, None]

    @property
    def finite(self) -> Bool[Tensor, "r"]:
        """Whether all numbers of each head are finite; false for a head that diverged."""
        return self.weight.isfinite().all(2).all(1) & self.bias.isfinite().all(1)
