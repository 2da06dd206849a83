"""How the networks of Colorful Moving MNIST are trained, both on pairs of views and on labels.

b: clips
"""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from vantage.data.order import epoch_order, steps_in
from vantage.errors import UserError
from vantage.schedules import CosineByStep, LearningRate
from vantage.training.optimizers import SGD, Optimizer

__all__ = ["ClipTraining", "OnStep"]

OnStep = Callable[[int, float], None]
"""Called after each step with the number of steps done and the last loss."""


@dataclass(frozen=True)
class ClipTraining:
    """Epochs, batches and learning rates of arXiv 2005.10243, appendix B.4."""

    epochs: int = 200
    """Passes over the clips; there is one clip per digit."""

    batch_size: int = 128
    """Clips per step."""

    clips: int = 0
    """Clips per epoch, drawn anew in each epoch; 0 means one per digit."""

    optimizer: Optimizer = SGD(momentum=0.9, weight_decay=0.0)
    """SGD with momentum 0.9 and without weight decay (our choice)."""

    learning_rate: LearningRate = CosineByStep(0.03)
    """Learning rate: 0.03, decayed along half a cosine, updated every step (our choice)."""

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 2 or self.clips < 0:
            raise UserError(
                f"ClipTraining: epochs is {self.epochs}, batch_size {self.batch_size} and clips {self.clips}; give at"
                " least 1 epoch, batches of at least 2 clips, and clips not below 0"
            )

    def steps(self, digits: int) -> int:
        """Total number of optimizer steps. Raises `DataError` if there are too few digits to fill a batch."""
        return self.epochs * self._steps_of_an_epoch(digits)

    def train(
        self,
        network: nn.Module,
        digits: int,
        seed: int,
        loss: Callable[[int, Int[Tensor, "b"]], Float[Tensor, ""]],
        on_step: OnStep,
    ) -> None:
        """Train a network to the end; `loss` returns the loss of some digits' clips in an epoch.

        The order of the digits is a function of (seed, epoch); the incomplete last batch of an epoch is dropped.
        """
        steps = self._steps_of_an_epoch(digits)
        optimizer = self.optimizer.build(network)
        network.train()
        for epoch in range(self.epochs):
            order = epoch_order(digits, seed, epoch)[: steps * self.batch_size]
            for number, part in enumerate(order.split(self.batch_size)):
                step = epoch * steps + number
                for group in optimizer.param_groups:
                    group["lr"] = self.learning_rate(step, steps, self.epochs)
                optimizer.zero_grad(set_to_none=True)
                current_loss = loss(epoch, part)
                current_loss.backward()
                optimizer.step()
                on_step(step + 1, float(current_loss.detach()))
        network.eval()

    def _steps_of_an_epoch(self, digits: int) -> int:
        return steps_in(min(digits, self.clips or digits), self.batch_size)
