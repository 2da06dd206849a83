"""What a run reports about itself every epoch, without labels, and whether it is collapsing.

b: queries on this process   k: branches   d: width
"""

from collections.abc import Iterator, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage import processes
from vantage.measures import alignment, deviation, effective_rank, pair_potential, uniformity
from vantage.step import Watched

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
    NAMES = ("loss", "accuracy", "alignment", "pairs")

    def __init__(self, width: int, branches: int = 0, others: Sequence[int] = ()) -> None:
        """`branches` is how many branches' losses are kept, and `others` numbers those that are watched beside the
        first."""
        super().__init__()
        self.register_buffer("sums", torch.zeros(len(self.NAMES), dtype=torch.float64))
        self.register_buffer("batches", torch.zeros(2, dtype=torch.float64))
        self.register_buffer("total", torch.zeros(width, dtype=torch.float64))
        self.register_buffer("outer", torch.zeros(width, width, dtype=torch.float64))
        self.register_buffer("branches", torch.zeros(branches + 1, dtype=torch.float64))
        self.others = nn.ModuleDict({str(number): Monitor(width) for number in others})

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
        nearest key of another image (`Watched`)."""
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
    def add_branches(self, losses: Float[Tensor, "k"], watched: Mapping[int, Watched]) -> None:
        """Add the losses of a batch's branches, if they are kept, and what is watched of branches after the first."""
        if len(self.branches) > 1:
            self.branches[:-1] += losses.double().to(self.branches.device) / processes.count()
            self.branches[-1] += 1.0 / processes.count()
        for number, other in self._others():
            other.add(losses[number], *watched[number])

    def read(self) -> dict[str, float]:
        """The epoch's numbers, over all processes.

        loss: mean; accuracy: share of queries closer to their positive than to any key of another image in the same
        step (with a bank, than to the row of any image in the same step; with accumulated parts, in the same part:
        fewer rows, so it is higher); alignment, uniformity,
        rank and deviation: of the queries, see `vantage.measures.sphere`. Pairs for the uniformity are those of one
        part, or of all parts if these are compared with each other, on one process. All but the loss are of the first
        branch; accuracy.1, …, deviation.1 are those of branch 1, if it is watched. loss.0, loss.1, …: mean of each
        branch, before its weight, if they are kept.
        """
        sums, batches, total, outer = (processes.total(getattr(self, n)) for n in ("sums", "batches", "total", "outer"))
        mean = dict(zip(self.NAMES, (sums / batches[0]).tolist(), strict=True))
        numbers = {
            "loss": mean["loss"],
            "accuracy": mean["accuracy"],
            "alignment": mean["alignment"],
            "uniformity": uniformity(mean["pairs"]),
            "rank": effective_rank(outer),
            "deviation": deviation(total, outer, batches[1]),
            **{f"loss.{number}": loss for number, loss in enumerate(self._branch_means())},
        }
        for number, other in self._others():
            numbers |= {f"{name}.{number}": value for name, value in other.read().items() if name != "loss"}
        return numbers

    def later(self) -> dict[str, Tensor]:
        """Buffers that checkpoints of earlier versions lack; for these, an epoch counts from the checkpoint."""
        return {name: value for name, value in self.state_dict().items() if name.startswith(("branches", "others."))}

    def _others(self) -> Iterator[tuple[int, "Monitor"]]:
        for number, other in self.others.items():
            assert isinstance(other, Monitor)
            yield int(number), other

    def _branch_means(self) -> list[float]:
        sums = processes.total(self.branches)
        return (sums[:-1] / sums[-1]).tolist()


def smallest_rank(width: int) -> float:
    """The effective rank below which vectors of this width count as collapsed to a few dimensions."""
    return max(2.0, 0.03 * width)


def warning(metrics: Mapping[str, float], width: int) -> str | None:
    """A warning in plain words if the vectors collapse, else `None`. It names the branch if several are watched
    (`deviation.1`, `rank.1`)."""
    ends = [name.removeprefix("rank") for name in metrics if name == "rank" or name.startswith("rank.")]
    warnings = {end: _collapse(metrics.get(f"deviation{end}", 1.0), metrics[f"rank{end}"], width) for end in ends}
    texts = [f"branch {end[1:] or 0}: {text}" if len(ends) > 1 else text for end, text in warnings.items() if text]
    return ". ".join(texts) or None


def _collapse(deviation: float, rank: float, width: int) -> str | None:
    if deviation < SMALLEST_DEVIATION:
        return (
            f"the vectors of different images are nearly one point (deviation {deviation:.3f}; 1 is well "
            "spread): the encoder is collapsing. Lower the learning rate, check that the negatives are not the "
            "positives, or raise the temperature"
        )
    if rank < smallest_rank(width):
        return (
            f"the vectors use only about {rank:.1f} of {width} dimensions: a dimensional collapse. "
            "Stronger views, more negatives or a lower learning rate usually help"
        )
    return None
