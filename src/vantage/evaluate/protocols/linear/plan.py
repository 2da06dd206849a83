"""Settings in which linear protocols differ.

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
    """How a training image is seen: through random crops."""

    def crop_one(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> UInt8[Tensor, "3 s s"]:
        """The crop of one image of any size, in the thread that decoded it."""
        ...

    def finish(self, crops: UInt8[Tensor, "b 3 s s"], generator: torch.Generator) -> Float[Tensor, "b c s s"]:
        """The views made of crops, on their device."""
        ...

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> Float[Tensor, "b c s s"]:
        """Both steps, for images of one size, on their device."""
        ...


_PLAIN = Descent()
"""SGD with momentum .9 and no weight decay."""

Start = Callable[[int, int], tuple[Float[Tensor, "c d"], Float[Tensor, "c"]]]
"""Initial weights and biases for a number of classes and a width, from torch's default generator."""


@dataclass(frozen=True)
class LinearPlan:
    """Everything in which linear protocols differ."""

    learning_rates: tuple[float, ...]
    """Learning rates."""
    epochs: int
    """Passes over the training images."""
    batch_size: int
    """Images per step."""
    view: TrainingView
    """How a training image is seen."""
    seed: int
    """Seed of the order, the views, the initial weights and the choice of held-out images."""
    milestones: tuple[int, ...]
    """Epochs before which the learning rates are reduced."""
    decay: float
    """What they are then multiplied by."""
    start: Start
    """Initial weights."""
    descent: Descent = Descent()
    """The steps of SGD."""
    normalize: Callable[[int], nn.Module] = nn.Identity
    """For a number of channels: what features (b, channels, positions) pass through before a classifier."""
    held_out: float = 0.1
    """Share of each class of the training images that is held out, if there is something to choose."""

    @property
    def facts(self) -> str:
        """All fields as text, for the key of the saved state."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return repr(values | {"start": self.start.__name__})

    @property
    def constants(self) -> dict[str, Any]:
        """Everything that is not a setting of the protocol, as plain data."""
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
        """What the learning rates are multiplied by in an epoch."""
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
    """Settings of every linear protocol that trains its classifiers by SGD on random views."""

    learning_rates: tuple[float, ...] = (0.01,)
    """Learning rates trained side by side, for a batch of 256. With one rate nothing is held out; among several, a
    tenth of the training images decides."""
    epochs: int = 100
    """Passes over the training images."""
    batch_size: int = 256
    """Images per step; learning rates are not scaled by it."""
    seed: int = 0
    """Seed of the order, the crops, the initial weights and the choice of held-out images."""

    def __post_init__(self) -> None:
        if not self.learning_rates or not all(0 < rate < math.inf for rate in self.learning_rates):
            raise UserError(
                f"linear evaluation: learning_rates is {self.learning_rates}; give one or more, all above 0 and finite"
            )
        if self.epochs < 1 or self.batch_size < 1:
            raise UserError(
                f"linear evaluation: epochs is {self.epochs} and batch_size is {self.batch_size}; both must be 1 or"
                " more"
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
        """A plan with these settings: training images are seen through `view`, and learning rates are multiplied by
        `decay` before each epoch of `milestones`."""
        return LinearPlan(
            self.learning_rates, self.epochs, self.batch_size, view, self.seed,
            milestones, decay, start, descent, normalize,
        )  # fmt: skip
