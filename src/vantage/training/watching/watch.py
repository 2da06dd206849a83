"""Check the losses of a run, a few at a time: one that is not finite ends the run."""

import math
from pathlib import Path

import torch
from torch import Tensor

from vantage import processes
from vantage.errors import UserError
from vantage.training.folder import checkpoint
from vantage.training.session import Session

__all__ = ["Watch"]


class Watch:
    """Losses not yet read: reading each one immediately would make the host wait for the device."""

    def __init__(self, session: Session, folder: Path) -> None:
        self.session, self.folder = session, folder
        self.pending: list[tuple[int, Tensor]] = []

    def add(self, step: int, loss: Tensor) -> None:
        """Take the loss of a step, without reading it."""
        self.pending.append((step, loss))

    def check_weights(self, step: int) -> None:
        """Raises `UserError` if a weight is not finite: normalized vectors can hide that from the loss."""
        for name, weight in self.session.learner.networks.named_parameters():
            if not torch.isfinite(weight).all():
                newest = checkpoint.latest(self.folder)
                raise UserError(
                    f"the weight {name} is no longer finite at step {step}. Last good checkpoint: "
                    f"{newest or 'none yet'}. Lower the learning rate ({self.session.learning_rate(step - 1):.3g})"
                )

    def check(self) -> float:
        """The newest loss. Raises `UserError` for the first that is not finite, before it can reach a checkpoint."""
        values = processes.total(torch.stack([loss for _, loss in self.pending]).float()) / processes.count()
        for (step, _), value in zip(self.pending, values.tolist(), strict=True):
            if not math.isfinite(value):
                self.session.writer.finish()  # on all processes, which have the same values
                newest, precision = checkpoint.latest(self.folder), self.session.run.hardware.precision
                also = ", or use float32 (--precision 32-true)" if precision.endswith("mixed") else ""
                raise UserError(
                    f"the loss became {value} at step {step} (learning rate {self.session.learning_rate(step):.3g}). "
                    f"Last good checkpoint: {newest or 'none yet'}. Lower the learning rate{also}"
                )
        self.pending.clear()
        return values.tolist()[-1]
