"""Rules that keep a band of ranks: the most similar keys, all but the most similar, or the least similar.

b: queries   n: keys scored
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from vantage import processes
from vantage.errors import UserError
from vantage.negatives.ranks import within
from vantage.negatives.ranks_of_shards import within_all
from vantage.records import Keys, Scores
from vantage.schedules import Constant, Schedule

__all__ = ["AbsoluteRing", "Amount", "Ball", "BandRule", "Count", "Easiest", "Hardest", "Ring", "Share"]


class BandRule(ABC):
    """A rule that keeps the ranks [inner, outer) of each query's pairs, where rank 0 is the most similar.

    Only pairs that earlier rules left are ranked. The counts are exact: equal cosines rank by column. A query that has
    pairs keeps at least one. `sum_negatives` selects such a band in tiles of rows, without sorting.
    """

    @abstractmethod
    def ranks(self, count: Int[Tensor, "b"], step: int) -> tuple[Int[Tensor, "b"], Int[Tensor, "b"]]:
        """The ranks inner and outer for queries with `count` pairs, on the device of `count`. Neither may decrease as
        `count` grows."""

    def edges(self, scores: Scores, step: int) -> tuple[Int[Tensor, "b"], Int[Tensor, "b"], int]:
        """The ranks inner and outer for these pairs, on the CPU if no pair was dropped; and an upper bound of `outer`
        that needs no host sync."""
        rows, columns = scores.cosine.shape
        most = int(self.ranks(torch.tensor([columns]), step)[1])
        count = torch.full((rows,), columns) if scores.keeps_all else scores.count
        return *self.ranks(count, step), most

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs of the band."""
        value = scores.cosine.detach()
        value = value if scores.keeps_all else value.masked_fill(~scores.keep, -torch.inf)
        return scores.only(within(value, *self.edges(scores, step)).inside)

    def on_shard(self, scores: Scores, query: Keys, first: int, step: int) -> Scores:
        """The pairs of the band that are on this process, if every process has some columns of the same queries."""
        value = scores.cosine.detach().masked_fill(~scores.keep, -torch.inf)
        inner, outer = self.ranks(processes.total(scores.count), step)
        return scores.only(within_all(value, inner, outer))


@dataclass(frozen=True)
class Ring(BandRule):
    """Similar keys without the most similar ones (Wu et al., arXiv 2010.02037): of n keys the ranks [i, o), where
    o = ⌊keep · n⌋ and i = ⌊drop · o⌋.

    In the paper's percentiles of similarity the ring is [w_ℓ, w_u] with w_ℓ = 100 (1 − keep) and
    w_u = 100 (1 − keep · drop): keep = drop = .1 is [90, 99], 4,500 of 50,000 bank rows or 5,898 of 65,536 keys. As in
    the released code, `drop` is a share of the pairs that `keep` leaves; in `AbsoluteRing` it is a share of all pairs.

    With a queue the whole ring is used, so this is the last rule. With a bank, negatives are drawn from the ring:
    (Ring(), Sample(k)). The query's own row in a bank is ranked like any other, and the inner cut removes it once the
    network is trained; (OtherImages(), Ring(), Sample(k)) always excludes it.
    """

    keep: Schedule = Constant(0.1)
    """Share of the pairs to keep, the most similar ones, by step; 1 keeps all. The paper anneals it from 1 to .1 over
    100 epochs: BetweenEpochs(Linear(1.0, 0.1, 100))."""

    drop: Schedule = Constant(0.1)
    """Share of these pairs to drop again, the most similar ones, by step; below 1. With 0 the ring is a ball."""

    def ranks(self, count: Int[Tensor, "b"], step: int) -> tuple[Int[Tensor, "b"], Int[Tensor, "b"]]:
        """⌊drop · ⌊keep · n⌋⌋ and ⌊keep · n⌋. Raises `UserError` for a drop that leaves nothing."""
        outer = _at_least_one(_share(self, "keep", self.keep, step, count), count)
        inner = _share(self, "drop", self.drop, step, outer)
        _check_room(self, self.drop(step), 1.0, step)
        return _leave_one(inner, outer), outer


@dataclass(frozen=True)
class AbsoluteRing(BandRule):
    """`Ring` with a `drop` that is a share of all pairs: ranks [⌊drop · n⌋, ⌊keep · n⌋).

    w_ℓ = 100 (1 − keep) and w_u = 100 (1 − drop): the reading of the paper's text (arXiv 2010.02037, section 4), where
    w_ℓ anneals towards a fixed w_u.
    """

    keep: Schedule = Constant(0.1)
    """Share of the pairs to keep, the most similar ones, by step; 1 keeps all."""

    drop: Schedule = Constant(0.01)
    """Share of all pairs to drop, the most similar ones, by step; below `keep`."""

    def ranks(self, count: Int[Tensor, "b"], step: int) -> tuple[Int[Tensor, "b"], Int[Tensor, "b"]]:
        """⌊drop · n⌋ and ⌊keep · n⌋. Raises `UserError` for a drop that leaves nothing."""
        outer = _at_least_one(_share(self, "keep", self.keep, step, count), count)
        inner = _share(self, "drop", self.drop, step, count)
        _check_room(self, self.drop(step), self.keep(step), step)
        return _leave_one(inner, outer), outer


@dataclass(frozen=True)
class Ball(BandRule):
    """The most similar keys, including the very closest: `Ring` with drop 0 (arXiv 2010.02037, Table 2, "w_u = 100").

    Keeps ⌊keep · n⌋ of the n keys that earlier rules left, also with a bank; there the released code used the batch
    size as n.
    """

    keep: Schedule = Constant(0.1)
    """Share of the pairs to keep, the most similar ones, by step; 1 keeps all."""

    def ranks(self, count: Int[Tensor, "b"], step: int) -> tuple[Int[Tensor, "b"], Int[Tensor, "b"]]:
        """0 and ⌊keep · n⌋."""
        return torch.zeros_like(count), _at_least_one(_share(self, "keep", self.keep, step, count), count)


@runtime_checkable
class Amount(Protocol):
    """How many of a query's pairs a rule keeps."""

    def of(self, count: Int[Tensor, "b"], step: int) -> Int[Tensor, "b"]:
        """The number, for queries with `count` pairs."""
        ...


@dataclass(frozen=True)
class Count:
    """A fixed number of pairs, or all if there are fewer."""

    count: int
    """Number of pairs of each query."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UserError(f"Count({self.count}) keeps nothing: give at least 1")

    def fit_to(self, images: int, batch_size: int) -> "Count":
        """At most a quarter of the images, as in `NearMates`."""
        return replace(self, count=min(self.count, max(1, images // 4)))

    def of(self, count: Int[Tensor, "b"], step: int) -> Int[Tensor, "b"]:
        """The number, for queries with `count` pairs."""
        return count.clamp(max=self.count)


@dataclass(frozen=True)
class Share:
    """A share of the pairs, rounded down, but at least one."""

    share: Schedule = Constant(0.1)
    """Share of each query's pairs, by step; 1 means all."""

    def of(self, count: Int[Tensor, "b"], step: int) -> Int[Tensor, "b"]:
        """The number, for queries with `count` pairs."""
        return _at_least_one(_share(self, "share", self.share, step, count), count)


@dataclass(frozen=True)
class Hardest(BandRule):
    """The most similar keys. With a share and a draw after it, InterCLR's semi-hard negatives (arXiv 2008.11702)."""

    amount: Amount = Share()
    """How many: `Count` or `Share`."""

    def ranks(self, count: Int[Tensor, "b"], step: int) -> tuple[Int[Tensor, "b"], Int[Tensor, "b"]]:
        """0 and the amount."""
        return torch.zeros_like(count), self.amount.of(count, step)


@dataclass(frozen=True)
class Easiest(BandRule):
    """The least similar keys. With a share and a draw after it, InterCLR's semi-easy negatives (arXiv 2008.11702)."""

    amount: Amount = Share()
    """How many: `Count` or `Share`."""

    def ranks(self, count: Int[Tensor, "b"], step: int) -> tuple[Int[Tensor, "b"], Int[Tensor, "b"]]:
        """The last ranks, as many as the amount."""
        return count - self.amount.of(count, step), count


def _share(part: object, field: str, schedule: Schedule, step: int, of: Int[Tensor, "b"]) -> Int[Tensor, "b"]:
    """⌊share · of⌋. For a share outside [0, 1], raises `UserError` that names the part's field."""
    share = schedule(step)
    if not 0 <= share <= 1:
        raise UserError(f"{type(part).__name__}.{field} is {share} at step {step}: a share must lie in [0, 1]")
    return (of.double() * share + 1e-6).floor().long()  # .29 · 100 is 28.999999999999996 in binary


def _check_room(ring: Ring | AbsoluteRing, drop: float, keep: float, step: int) -> None:
    if 0 < drop and drop >= keep:
        raise UserError(
            f"{type(ring).__name__} drops {drop:g} of what is at most {keep:g} at step {step}, so nothing is left: make"
            " drop smaller"
        )


def _at_least_one(size: Int[Tensor, "b"], count: Int[Tensor, "b"]) -> Int[Tensor, "b"]:
    """The sizes, raised to 1 if there is anything to take."""
    return torch.maximum(size, count.clamp(max=1))


def _leave_one(inner: Int[Tensor, "b"], outer: Int[Tensor, "b"]) -> Int[Tensor, "b"]:
    """The inner ranks, lowered if necessary so that at least one rank stays."""
    return torch.minimum(inner, (outer - 1).clamp(min=0))
