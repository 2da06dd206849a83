"""What a run reports about itself every epoch, without labels, and whether it is collapsing.

b: queries on this process   k: branches   d: width
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage import processes
from vantage.measures import alignment, deviation, effective_rank, pair_potential, uniformity

__all__ = ["SMALLEST_DEVIATION", "Monitor", "smallest_rank", "warning"]

SMALLEST_DEVIATION = 0.1
"""Deviation below which vectors count as a single point; 1 is well spread."""


class Monitor(nn.Module):
    """Sums over an epoch; they are saved buffers, so a resumed epoch reports the same numbers."""

    sums: Tensor
    batches: Tensor
    total: Tensor
    outer: Tensor
    branches: Tensor
    """Sum of each branch's loss, if they are kept; then the number of batches that were added."""
    LATER = ("branches",)
    """Buffers that checkpoints of earlier versions lack; for these, an epoch counts from the checkpoint."""
    NAMES = ("loss", "accuracy", "alignment", "pairs")

    def __init__(self, width: int, branches: int = 0) -> None:
        """`branches` is how many branches' losses are kept (`kept_losses`)."""
        super().__init__()
        self.register_buffer("sums", torch.zeros(len(self.NAMES), dtype=torch.float64))
        self.register_buffer("batches", torch.zeros(2, dtype=torch.float64))
        self.register_buffer("total", torch.zeros(width, dtype=torch.float64))
        self.register_buffer("outer", torch.zeros(width, width, dtype=torch.float64))
        self.register_buffer("branches", torch.zeros(branches + 1, dtype=torch.float64))

    def reset(self) -> None:
        """Start a new epoch."""
        for buffer in self.buffers():
            buffer.zero_()

    @torch.no_grad()
    def add(
        self,
        loss: Float[Tensor, ""],
        query: Float[Tensor, "b d"],
        positive: Float[Tensor, "b"],
        nearest: Float[Tensor, "b"],
    ) -> None:
        """Add one batch: its loss, the unit vectors of its queries, and their cosines with their positives and with the
        nearest key of another image."""
        query, positive, nearest = query.float(), positive.float(), nearest.float()
        correct = positive > nearest + 1e-6  # by more than rounding, so that a collapsed encoder scores 0
        parts = [loss.double(), correct.double().mean(), alignment(positive), pair_potential(query)]
        # Each process has a share of the batch. Dividing by their number makes the total weigh every step equally.
        self.sums += torch.stack([part.to(self.sums.device) for part in parts]) / processes.count()
        self.batches[0] += 1.0 / processes.count()
        self.batches[1] += float(len(query))
        self.total += query.double().sum(0)
        self.outer += (query.T @ query).double()

    @torch.no_grad()
    def add_branches(self, losses: Float[Tensor, "k"]) -> None:
        """Add the losses of a batch's branches, if they are kept."""
        if len(self.branches) > 1:
            self.branches[:-1] += losses.double().to(self.branches.device) / processes.count()
            self.branches[-1] += 1.0 / processes.count()

    def read(self) -> dict[str, float]:
        """The epoch's numbers, over all processes.

        loss: mean; accuracy: share of queries closer to their positive than to any key of another image in
        the same step; alignment, uniformity, rank and deviation: of the queries, see `vantage.measures.sphere`. All but
        the loss are of the first branch. loss.0, loss.1, …: mean of each branch, before its weight, if they are kept.
        """
        sums, batches, total, outer = (processes.total(getattr(self, n)) for n in ("sums", "batches", "total", "outer"))
        mean = dict(zip(self.NAMES, (sums / batches[0]).tolist(), strict=True))
        return {
            "loss": mean["loss"],
            "accuracy": mean["accuracy"],
            "alignment": mean["alignment"],
            "uniformity": uniformity(mean["pairs"]),
            "rank": effective_rank(outer),
            "deviation": deviation(total, outer, batches[1]),
            **{f"loss.{number}": loss for number, loss in enumerate(self._branch_means())},
        }

    def _branch_means(self) -> list[float]:
        sums = processes.total(self.branches)
        return (sums[:-1] / sums[-1]).tolist()


def smallest_rank(width: int) -> float:
    """The effective rank below which vectors of this width count as collapsed to a few dimensions."""
    return max(2.0, 0.03 * width)


def warning(metrics: dict[str, float], width: int) -> str | None:
    """A warning in plain words if the vectors collapse, else `None`."""
    if metrics["deviation"] < SMALLEST_DEVIATION:
        return (
            f"the vectors of different images are nearly one point (deviation {metrics['deviation']:.3f}; 1 is well "
            "spread): the encoder is collapsing. Lower the learning rate, check that the negatives are not the "
            "positives, or raise the temperature"
        )
    if metrics["rank"] < smallest_rank(width):
        return (
            f"the vectors use only about {metrics['rank']:.1f} of {width} dimensions: a dimensional collapse. "
            "Stronger views, more negatives or a lower learning rate usually help"
        )
    return None
