"""What a run tells about itself every epoch, without labels, and whether it is collapsing.

b: queries here   d: width
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage import processes

__all__ = ["Monitor", "effective_rank", "warning"]


class Monitor(nn.Module):
    """Sums over an epoch; they are saved buffers, so a resumed epoch reports the same numbers."""

    sums: Tensor
    batches: Tensor
    total: Tensor
    outer: Tensor
    NAMES = ("loss", "accuracy", "alignment", "pairs")

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("sums", torch.zeros(len(self.NAMES), dtype=torch.float64))
        self.register_buffer("batches", torch.zeros(2, dtype=torch.float64))
        self.register_buffer("total", torch.zeros(width, dtype=torch.float64))
        self.register_buffer("outer", torch.zeros(width, width, dtype=torch.float64))

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
        """Count one batch: its loss, its queries' unit vectors, their cosines with their positives and with the nearest
        key of another image."""
        query, positive, nearest = query.float(), positive.float(), nearest.float()
        right = (positive > nearest + 1e-6).double().mean()  # by more than rounding: a collapsed encoder finds nothing
        apart = torch.exp(4.0 * (query @ query.T - 1.0))  # exp(−2 |x − y|²) of unit vectors
        spread = (apart.sum() - apart.diagonal().sum()) / max(1, len(query) * (len(query) - 1))
        parts = [loss.double(), right, (2.0 - 2.0 * positive).double().mean(), spread.double()]
        self.sums += torch.stack([part.to(self.sums.device) for part in parts])
        self.batches += torch.tensor([1.0, len(query)], dtype=torch.float64, device=self.batches.device)
        self.total += query.double().sum(0)
        self.outer += (query.T @ query).double()

    def read(self) -> dict[str, float]:
        """The epoch's numbers, over all processes.

        loss: mean; accuracy: share of queries closer to their positive than to any key that their step made of another
        image; alignment: mean squared distance to the positive; uniformity: log mean exp(−2|x − y|²) (Wang & Isola,
        arXiv 2005.10242; −4 is uniform on the sphere, 0 a point); rank: effective rank of the vectors (RankMe, arXiv
        2210.02885); deviation: mean over dimensions of the vectors' standard deviation times √d (1: spread over the
        sphere, 0: a point).
        """
        sums, batches, total, outer = (processes.total(getattr(self, n)) for n in ("sums", "batches", "total", "outer"))
        mean = dict(zip(self.NAMES, (sums / batches[0]).tolist(), strict=True))
        center = total / batches[1]
        variance = (outer.diagonal() / batches[1] - center.square()).clamp(min=0)
        return {
            "loss": mean["loss"],
            "accuracy": mean["accuracy"],
            "alignment": mean["alignment"],
            "uniformity": float(torch.tensor(mean["pairs"]).clamp(min=1e-30).log()),
            "rank": effective_rank(outer),
            "deviation": float(variance.sqrt().mean() * len(total) ** 0.5),
        }


def effective_rank(outer: Float[Tensor, "d d"]) -> float:
    """exp of the entropy of the singular values of X, given XᵀX (Roy & Vetterli 2007; RankMe, arXiv 2210.02885, Eq.
    2)."""
    singular = torch.linalg.eigvalsh(outer.double().cpu()).clamp(min=0).sqrt()
    share = singular / singular.sum().clamp(min=1e-12) + 1e-7
    return float(torch.exp(-(share * share.log()).sum()))


def warning(told: dict[str, float], width: int) -> str | None:
    """Plain words if the vectors collapse, else `None`."""
    if told["deviation"] < 0.1:
        return (
            f"the vectors of different images are nearly one point (deviation {told['deviation']:.3f}; 1 is well "
            "spread): the encoder is collapsing. Lower the learning rate, check that the negatives are not the "
            "positives, or raise the temperature"
        )
    if told["rank"] < max(2.0, 0.03 * width):
        return (
            f"the vectors use only about {told['rank']:.1f} of {width} dimensions: a dimensional collapse. "
            "Stronger views, more negatives or a lower learning rate usually help"
        )
    return None
