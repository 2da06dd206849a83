"""What linear protocols set differently.

c: classes   d: width of the features
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage.evaluate.heads import Descent
from vantage.views.augmentation import Augmentation

__all__ = ["Plan", "Start", "normal_start", "torch_start"]

Start = Callable[[int, int], tuple[Float[Tensor, "c d"], Float[Tensor, "c"]]]
"""Classes and width to initial weights and biases, by torch's default generator."""


@dataclass(frozen=True)
class Plan:
    """What linear protocols set differently."""

    rates: tuple[float, ...]
    """Learning rates."""
    epochs: int
    """Passes over the training images."""
    batch: int
    """Images of a step."""
    view: Augmentation
    """How a training image is seen."""
    seed: int
    """Of the order, the views, the initial weights and the images held out."""
    falls: tuple[int, ...]
    """Epochs before which the rates fall."""
    fall: float
    """What they are then multiplied with."""
    start: Start
    """Initial weights."""
    descent: Descent = Descent()
    """How weights move."""
    normalise: Callable[[int], nn.Module] = nn.Identity
    """By the number of channels: what features (b, channels, places) go through before a classifier."""

    @property
    def facts(self) -> str:
        """All of it in words."""
        told = {one.name: getattr(self, one.name) for one in fields(self)}
        return repr(told | {"start": self.start.__name__})

    def factor(self, epoch: int) -> float:
        """What the rates are multiplied with in an epoch."""
        return self.fall ** sum(epoch >= fall for fall in self.falls)


def normal_start(classes: int, width: int) -> tuple[Float[Tensor, "c d"], Float[Tensor, "c"]]:
    """Weights from N(0, .01²), biases 0."""
    return torch.randn(classes, width) * 0.01, torch.zeros(classes)


def torch_start(classes: int, width: int) -> tuple[Float[Tensor, "c d"], Float[Tensor, "c"]]:
    """torch's own initial weights of a linear layer."""
    layer = nn.Linear(width, classes)
    return layer.weight.detach(), layer.bias.detach()
