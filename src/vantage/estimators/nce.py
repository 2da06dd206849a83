"""Noise-contrastive estimation: each pair is classified as data or noise.

b: queries
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage import processes
from vantage.estimators.estimator import TableEstimator, check_temperature
from vantage.records import Scores

__all__ = ["NCE", "NCEState"]


@dataclass(frozen=True)
class NCE:
    """Noise-contrastive estimation with a normalizer frozen after the first batch.

    Wu et al., arXiv 1805.01978, Eqs. 5–8, in the form of its release: P = exp(s/τ)/Z with Z = n·mean exp(s/τ) over
    the columns of the first batch; h = P/(P + K/n + 1e−7) for K negatives; loss −log h(positive) − Σ log(1 −
    h(negative)).

    The first batch is the joint one, over all processes and accumulated parts. A run shows it the parts of the first
    step once without gradients (`NCEState.waits`). In a loop without such a pass, each part of the first step uses the
    Z of the parts until then.
    """

    temperature: float = 0.07
    """τ: what cosines are divided by."""

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def build(self, images: int) -> "NCEState":
        """The estimator for a bank of `images` rows."""
        return NCEState(self.temperature, images)


class NCEState(nn.Module, TableEstimator):
    """The estimator of `NCE`. Its normalizer, log Z, is a buffer saved in checkpoints; nan until the first step of
    training, whose batch sets it."""

    log_normalizer: Tensor

    def __init__(self, temperature: float, images: int) -> None:
        super().__init__()
        self.temperature, self.images = temperature, images
        self._finite_buffer: tuple[Tensor, int] | None = None  # the buffer once it holds Z, and its version
        self._first: tuple[int, Tensor, Tensor] | None = None  # the first step; its sum of exponentials, and of columns
        self._shown: int | None = None  # the first step, if it was shown without gradients
        self.register_buffer("log_normalizer", torch.tensor(torch.nan, dtype=torch.float64))

    @property
    def waits(self) -> bool:
        """Whether Z is still to be set by a batch, all parts of which it needs."""
        return not self._is_set()

    def forward(self, positive: Scores, negative: Scores, step: int) -> Float[Tensor, "b"]:
        """One loss per query. The first step in training sets Z: each of its calls, for the batches of all processes,
        adds a part of the joint batch. If calls without gradients came before, only these do."""
        near, far = positive.logits(self.temperature), negative.logits(self.temperature)
        if self.training and self._is_part(step):
            self._add_to_normalizer(near.detach(), far.detach(), step)
        log_z = self.log_normalizer.to(near.dtype)
        log_noise = (negative.keep.sum(1, keepdim=True).to(near.dtype) / self.images + 1e-7).log()
        attract = torch.logaddexp(near - log_z, log_noise) - (near - log_z)
        repel = torch.logaddexp(far - log_z, log_noise) - log_noise
        attract = attract.masked_fill(~positive.keep, 0.0).sum(1)  # a dropped pair is −inf − −inf
        return (attract + repel.sum(1)) * positive.keep.any(1)

    def _is_part(self, step: int) -> bool:
        """Whether the queries of this call are a part of the batch that sets Z."""
        if self._is_set() and (self._first is None or self._first[0] != step):
            return False
        if not torch.is_grad_enabled():
            self._shown = step
        return not torch.is_grad_enabled() or self._shown != step

    def _is_set(self) -> bool:
        """Whether Z is set. The buffer is read once, and again only after something else has changed it."""
        buffer = self.log_normalizer
        if (
            self._finite_buffer is None
            or self._finite_buffer[0] is not buffer
            or self._finite_buffer[1] != buffer._version
        ):
            self._finite_buffer = None if bool(torch.isnan(buffer)) else (buffer, buffer._version)
        return self._finite_buffer is not None

    def _add_to_normalizer(self, near: Tensor, far: Tensor, step: int) -> None:
        both = torch.cat([near, far], 1).double()
        columns = processes.total(torch.isfinite(both).sum())
        # Shifted by the largest possible logit, not the batch's largest, so that processes can add up their parts.
        shift = 1.0 / self.temperature
        mass = processes.total((both - shift).exp().sum())
        if self._first is not None and self._first[0] == step:
            mass, columns = mass + self._first[1], columns + self._first[2]
        self._first = (step, mass, columns)
        self.log_normalizer.copy_(torch.log(self.images * mass / columns) + shift)
