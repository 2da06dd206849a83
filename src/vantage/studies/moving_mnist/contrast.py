"""Contrast two views of a clip within a batch, and estimate how much information they share.

b: clips   d: width of the vectors
"""

from dataclasses import dataclass
from statistics import fmean

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage import draws
from vantage.branch import Branch
from vantage.errors import UserError
from vantage.estimators import InfoNCE
from vantage.measures.information import i_nce
from vantage.memory import InBatch
from vantage.negatives import OtherImages
from vantage.positives import OtherViews
from vantage.records import Keys
from vantage.studies.moving_mnist.clips import Clips, normalize_pixels
from vantage.studies.moving_mnist.networks import ClipEncoder, ClipNetwork
from vantage.studies.moving_mnist.shared_factors import SharedFactors
from vantage.studies.moving_mnist.training import ClipTraining, OnStep

__all__ = ["ClipContrast"]


@dataclass(frozen=True)
class ClipContrast:
    """In-batch InfoNCE between the two views, averaged over both directions (our choice): each clip against the second
    views of the batch, and each second view against the clips (arXiv 2005.10243, appendix B.4)."""

    encoder: ClipEncoder = ClipEncoder()
    """The networks."""

    temperature: float = 0.1
    """τ: what cosines are divided by (our choice)."""

    course: ClipTraining = ClipTraining()
    """Epochs, batches and learning rates."""

    def train(self, clips: Clips, shared: SharedFactors, seed: int, on_step: OnStep) -> ClipNetwork:
        """Train a network on what the two views share, and return it in evaluation mode. Raises `UserError` if the loss
        is no longer finite."""
        with draws.torch_seed(seed):
            network = self.encoder.build()
        network.to(clips.digits.pixels.device)

        def loss(epoch: int, number: Int[Tensor, "b"]) -> Float[Tensor, ""]:
            pairs = clips.pairs(epoch, number, shared)
            batch_loss = self.loss(*network(normalize_pixels(pairs.first), normalize_pixels(pairs.second)))
            if not bool(batch_loss.isfinite()):
                raise UserError(f"the loss became {float(batch_loss.detach())}: lower the learning rate")
            return batch_loss

        self.course.train(network, len(clips), seed, loss, on_step)
        return network

    def loss(self, first: Float[Tensor, "b d"], second: Float[Tensor, "b d"]) -> Float[Tensor, ""]:
        """Mean loss of a batch of unit vectors."""
        number = torch.arange(len(first), device=first.device)
        views = (Keys(first, number), Keys(second, number))
        estimator = InfoNCE(self.temperature)
        total = first.new_zeros(())
        for asks, answers in ((0, 1), (1, 0)):
            branch = Branch(InBatch(), OtherViews(), (OtherImages(),), estimator, query=asks, keys=(answers,))
            total = total + branch.contrast(views[asks], (views[answers],), views[answers], 0).loss / 2
        return total

    @torch.no_grad()
    def information(self, network: ClipNetwork, clips: Clips, shared: SharedFactors, most: int) -> float:
        """I_NCE in nats on clips that were not used for training, in whole batches of up to `most` clips. It is at most
        log(batch). Raises `UserError` if there are too few digits for one batch.
        """
        batch, count = self.course.batch_size, min(len(clips), max(most, self.course.batch_size))
        if count < batch:
            raise UserError(f"I_NCE needs {batch} digits for a batch, but there are {count}: give more digits")
        network.eval()
        losses = []
        for number in torch.arange(count // batch * batch).split(batch):
            pairs = clips.pairs(0, number, shared)
            losses.append(float(self.loss(*network(normalize_pixels(pairs.first), normalize_pixels(pairs.second)))))
        return i_nce(fmean(losses), batch - 1)
