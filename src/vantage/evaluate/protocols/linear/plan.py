"""What linear protocols set differently.

c: classes (of a view: channels)   d: width of the features   b: images   h, w: size of an image   s: side of a view
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from vantage.errors import UserError
from vantage.evaluate.protocols.linear.heads import Descent

__all__ = ["LinearPlan", "LinearTraining", "Start", "TrainingView", "normal_start", "torch_start"]


@runtime_checkable
class TrainingView(Protocol):
    """How a training image is seen, a different part of it each time."""

    def crop_one(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> UInt8[Tensor, "3 s s"]:
        """The crop of one image of any size, where it is decoded."""
        ...

    def finish(self, crops: UInt8[Tensor, "b 3 s s"], generator: torch.Generator) -> Float[Tensor, "b c s s"]:
        """What crops become, on their device."""
        ...

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> Float[Tensor, "b c s s"]:
        """Both, for images of one size on their device."""
        ...


_PLAIN = Descent()
"""SGD with momentum .9 and no weight decay."""

Start = Callable[[int, int], tuple[Float[Tensor, "c d"], Float[Tensor, "c"]]]
"""Classes and width to initial weights and biases, by torch's default generator."""


@dataclass(frozen=True)
class LinearPlan:
    """What linear protocols set differently."""

    learning_rates: tuple[float, ...]
    """Learning rates."""
    epochs: int
    """Passes over the training images."""
    batch_size: int
    """Images of a step."""
    view: TrainingView
    """How a training image is seen."""
    seed: int
    """Of the order, the views, the initial weights and the images held out."""
    milestones: tuple[int, ...]
    """Epochs before which the rates fall."""
    decay: float
    """What they are then multiplied with."""
    start: Start
    """Initial weights."""
    descent: Descent = Descent()
    """How weights move."""
    normalize: Callable[[int], nn.Module] = nn.Identity
    """By the number of channels: what features (b, channels, places) go through before a classifier."""
    held_out: float = 0.1
    """Share of each class of the training images that chooses, where there is something to choose."""

    @property
    def facts(self) -> str:
        """All of it in words."""
        told = {one.name: getattr(self, one.name) for one in fields(self)}
        return repr(told | {"start": self.start.__name__})

    @property
    def fixed(self) -> dict[str, Any]:
        """What no setting of a protocol tells, as plain data."""
        return {
            "training_view": repr(self.view),
            "rates_fall_before_epochs": list(self.milestones),
            "rates_fall_by": self.decay,
            "start": " ".join((self.start.__doc__ or self.start.__name__).split()),
            "before_the_classifier": repr(self.normalize(1)),
            "held_out_to_choose": self.held_out,
            **asdict(self.descent),
        }

    def factor(self, epoch: int) -> float:
        """What the rates are multiplied with in an epoch."""
        return self.decay ** sum(epoch >= milestone for milestone in self.milestones)


def normal_start(classes: int, width: int) -> tuple[Float[Tensor, "c d"], Float[Tensor, "c"]]:
    """Weights from N(0, .01²), biases 0."""
    return torch.randn(classes, width) * 0.01, torch.zeros(classes)


def torch_start(classes: int, width: int) -> tuple[Float[Tensor, "c d"], Float[Tensor, "c"]]:
    """torch's own initial weights of a linear layer."""
    layer = nn.Linear(width, classes)
    return layer.weight.detach(), layer.bias.detach()


@dataclass(frozen=True)
class LinearTraining:
    """The settings of every linear protocol whose classifiers are trained by SGD on views of the images."""

    learning_rates: tuple[float, ...] = (0.01,)
    """Learning rates trained side by side, for a batch of 256. With one rate nothing is held out; of several, a tenth
    of the training images chooses."""
    epochs: int = 100
    """Passes over the training images."""
    batch_size: int = 256
    """Images of a step; rates are not scaled by it."""
    seed: int = 0
    """Of the order, the crops, the initial weights and the images held out."""

    def __post_init__(self) -> None:
        if not self.learning_rates or not all(0 < rate < math.inf for rate in self.learning_rates):
            raise UserError(
                f"linear evaluation: learning_rates are {self.learning_rates}; give at least one, all above 0 and"
                " finite"
            )
        if self.epochs < 1 or self.batch_size < 1:
            raise UserError(
                f"linear evaluation: epochs is {self.epochs} and batch_size {self.batch_size}; both must be 1 or more"
            )

    def plan(
        self,
        view: TrainingView,
        milestones: tuple[int, ...],
        decay: float,
        start: Start,
        descent: Descent = _PLAIN,
        normalize: Callable[[int], nn.Module] = nn.Identity,
    ) -> LinearPlan:
        """A plan with these settings: training images seen by `view`, learning rates times `decay` before each epoch of
        `milestones`."""
        return LinearPlan(
            self.learning_rates,
            self.epochs,
            self.batch_size,
            view,
            self.seed,
            milestones,
            decay,
            start,
            descent,
            normalize,
        )
