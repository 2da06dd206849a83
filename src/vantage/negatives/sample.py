"""Negatives drawn at random.

b: queries   n: keys scored   p: keys that earlier rules kept   k: keys drawn
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

from vantage import draws, processes
from vantage.errors import UserError
from vantage.negatives.ranks_of_shards import largest_of_all
from vantage.negatives.rows import over_rows
from vantage.negatives.rule import BlindRule
from vantage.records import Keys, Scores

__all__ = ["Distinct", "Draw", "DrawResult", "Sample"]

_LEAST = -(2**63)


class DrawResult(NamedTuple):
    """Columns drawn for each query."""

    column: Int[Tensor, "b k"]
    """The drawn columns; an arbitrary one if there were too few to draw from."""

    keep: Bool[Tensor, "b k"]
    """Whether the column was really drawn."""


@dataclass(frozen=True)
class Draw(ABC):
    """Draw negatives uniformly from the remaining ones, by the query's seed (`vantage.draws`)."""

    count: int
    """Number of negatives for each query."""

    salt: int = 0
    """A different number gives different draws for the same image and step."""

    share: float = 0.1
    """Largest share of the images that `count` may be after `fit`: 4,096 of 50,000 is about a tenth."""

    def __post_init__(self) -> None:
        name = type(self).__name__
        if self.count < 1:
            raise UserError(f"{name}(count={self.count}) draws nothing: give a count of at least 1")
        if not 0 < self.share <= 1:
            raise UserError(f"{name}(share={self.share}) is not a share of the images: give one above 0, at most 1")

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The drawn pairs, one column for each draw."""
        result = self.among(scores.keep, query)
        return scores.narrow(result.column).only(result.keep)

    def among(self, keep: Bool[Tensor, "b n"], query: Keys) -> DrawResult:
        """Draws from the kept columns of each query."""
        if keep.device.type != "cpu":
            return self.on_device(keep, query)
        table = keep.numpy()
        return self.of_rows(lambda row: np.flatnonzero(table[row]), keep.shape[1], query)

    def of_rows(self, columns: Callable[[int], Int64[np.ndarray, "p"]], keys: int, query: Keys) -> DrawResult:
        """`among` on the CPU. `columns` returns the kept columns of a row, in order, out of `keys` columns."""
        seeds = query.seeds.tolist()
        column = np.zeros((len(seeds), self.most(keys)), np.int64)
        keep = np.zeros(column.shape, np.bool_)

        def draw(row: int) -> None:
            picks = self.of_row(columns(row), seeds[row])
            column[row, : len(picks)], keep[row, : len(picks)] = picks, True

        over_rows(len(seeds), keys, draw)
        return DrawResult(torch.from_numpy(column), torch.from_numpy(keep))

    def fit_to(self, images: int, batch_size: int) -> "Draw":
        """At most `share` of the images, but at least 256 unless there are fewer images."""
        return replace(self, count=min(self.count, max(int(self.share * images), min(images, 256))))

    @abstractmethod
    def most(self, keys: int) -> int:
        """The maximum number of keys drawn from `keys` keys."""

    @abstractmethod
    def of_row(self, column: Int64[np.ndarray, "p"], seed: int) -> Int64[np.ndarray, "k"]:
        """Draws from the kept columns of one row."""

    @abstractmethod
    def on_device(self, keep: Bool[Tensor, "b n"], query: Keys) -> DrawResult:
        """`among` for all rows at once, with the same draws."""

    def on_shard(self, scores: Scores, query: Keys, first: int, step: int) -> Scores:
        """The drawn pairs that are on this process, if every process has some columns of the same queries and this one
        has those from `first` on. Raises `UserError` unless the kind of draw supports this."""
        raise UserError(f"{type(self).__name__} cannot draw from a sharded bank: take Sample, or sharded=False")


@dataclass(frozen=True)
class Sample(Draw, BlindRule):
    """Draw negatives uniformly from the remaining ones, with replacement: a key may be drawn twice.

    Banks draw this way and do not exclude the query's own row (Wu et al., arXiv 1805.01978: an alias table over equal
    weights); `(OtherImages(), Sample(k))` excludes it. The draws are a function of the query's seed (`vantage.draws`).
    """

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The drawn pairs, one column for each draw."""
        if scores.keeps_all:
            return scores.narrow(self.blindly(query, scores.keep.shape[1]))
        return super().__call__(scores, query, pool, step)

    def blindly(self, query: Keys, keys: int) -> Int[Tensor, "b k"]:
        """Draws from `keys` columns if none is dropped; needs no cosines."""
        return draws.integers(query.seeds, self.count, keys, self.salt)

    def most(self, keys: int) -> int:
        """`count`."""
        return self.count

    def of_row(self, column: Int64[np.ndarray, "p"], seed: int) -> Int64[np.ndarray, "k"]:
        """Draws from the kept columns of one row; none if there are no such columns."""
        number = draws.bits_at(seed, np.arange(self.count if len(column) else 0), self.salt) >> np.uint64(1)
        return column[number % np.uint64(max(1, len(column)))]

    def on_device(self, keep: Bool[Tensor, "b n"], query: Keys) -> DrawResult:
        """`among` for all rows at once, with the same draws."""
        running_count = keep.cumsum(1)
        # The r-th kept column is the first whose running count reaches r; a row that keeps none gives dropped columns.
        nth = draws.integers(query.seeds, self.count, running_count[:, -1:].clamp(min=1), self.salt) + 1
        column = torch.searchsorted(running_count, nth).clamp_(max=keep.shape[1] - 1)
        return DrawResult(column, keep.gather(1, column))

    def on_shard(self, scores: Scores, query: Keys, first: int, step: int) -> Scores:
        """The drawn pairs that are on this process, each in the column of its draw."""
        counts = processes.gather(scores.keep.sum(1)[None])
        lower, total = counts[: processes.rank()].sum(0)[:, None], counts.sum(0)[:, None]
        nth = draws.integers(query.seeds, self.count, total.clamp(min=1), self.salt) - lower
        if not scores.keep.shape[1]:  # no key of a narrowed pool is here
            return scores
        running_count = scores.keep.cumsum(1)
        column = torch.searchsorted(running_count, nth + 1).clamp_(max=running_count.shape[1] - 1)
        return scores.narrow(column).only((nth >= 0) & (nth < running_count[:, -1:]))


@dataclass(frozen=True)
class Distinct(Draw):
    """`Sample` without replacement: no key twice, and all keys if a query has fewer than `count`."""

    def most(self, keys: int) -> int:
        """`count`, or all keys if there are fewer."""
        return min(self.count, keys)

    def of_row(self, column: Int64[np.ndarray, "p"], seed: int) -> Int64[np.ndarray, "k"]:
        """Draws from the kept columns of one row, in order."""
        if len(column) <= self.count:
            return column
        number = draws.bits_at(seed, column, self.salt)
        return column[number >= np.partition(number, len(column) - self.count)[len(column) - self.count]]

    def on_device(self, keep: Bool[Tensor, "b n"], query: Keys) -> DrawResult:
        """`among` for all rows at once, with the same draws in another order."""
        # Flipping the sign bit makes signed numbers sort like the same bits without sign, as on the CPU.
        order = (draws.bits(query.seeds, keep.shape[1], self.salt) ^ _LEAST).masked_fill_(~keep, _LEAST)
        column = order.topk(self.most(keep.shape[1]), dim=1, sorted=False).indices
        return DrawResult(column, keep.gather(1, column))

    def on_shard(self, scores: Scores, query: Keys, first: int, step: int) -> Scores:
        """The drawn pairs that are on this process; the columns stay the same."""
        order = draws.bits(query.seeds, scores.keep.shape[1], self.salt, first) ^ _LEAST
        count = processes.total(scores.keep.sum(1)).clamp(max=self.count)
        return scores.only(largest_of_all(order.masked_fill_(~scores.keep, _LEAST), count[:, None])[0])
