"""Which columns of a row rank within a band; found by selection, never by sorting.

b: rows   n: columns
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Int64
from torch import Tensor

from vantage.negatives.rows import over_rows

__all__ = ["BandColumns", "columns_within", "within"]

_SAMPLE = 61  # one value in 61 shows roughly where a rank lies; odd, since classes and batches are often even
_LONG = 2**14  # with fewer values, looking at a sample first gains nothing


class BandColumns(NamedTuple):
    """The columns of each row that a band of ranks selects."""

    inside: Bool[Tensor, "b n"] | Float[Tensor, "b n"]
    """Whether each column is in the band, or how often it counts."""

    largest: Float[Tensor, "b"]
    """The largest value of the band; −inf if the band is empty."""


def within(
    value: Float[Tensor, "b n"], inner: Int[Tensor, "b"], outer: Int[Tensor, "b"], most: int | None = None
) -> BandColumns:
    """Columns whose rank is in [inner, outer), with rank 0 for the largest value of the row: outer − inner in each row.

    Equal values rank by column. `most` is an upper bound of `outer`, which the host could not read from a GPU without
    waiting; if `most` is omitted, all columns are ranked. Values should have float32 precision at least, since with
    fewer digits thousands of them are equal.
    """
    with torch.no_grad():
        if value.device.type != "cpu":
            return _on_device(value.detach(), inner, outer, value.shape[1] if most is None else most)
        return _on_cpu(value.detach(), inner, outer)


def columns_within(
    value: Float[np.ndarray, "n"], keep: Bool[np.ndarray, "n"], inner: int, outer: int
) -> Int64[np.ndarray, "p"]:
    """The columns, in order, that `within` selects among those of one row that `keep` marks. Fast if they are few: most
    values of a long row are only compared with a bound, which a sample of the row gives."""
    if outer <= inner:
        return np.empty(0, np.int64)
    near = np.flatnonzero(value >= _bound(value, keep, outer))
    column = near[keep[near]]
    if len(column) < outer:  # the sample misled
        column = np.flatnonzero(keep)
    column = column[_top(value[column], outer)]
    return column[~_top(value[column], inner)] if inner else column


def _bound(value: Float[np.ndarray, "n"], keep: Bool[np.ndarray, "n"], count: int) -> float:
    """A bound that almost surely at least `count` values to keep reach, but not many more."""
    sample = value[::_SAMPLE][keep[::_SAMPLE]]
    expected = count / _SAMPLE
    above = round(expected + 4 * expected**0.5) + 1
    if len(value) < _LONG or above >= len(sample):
        return -np.inf
    return float(np.partition(sample, len(sample) - above)[len(sample) - above])


def _top(value: Float[np.ndarray, "n"], count: int) -> Bool[np.ndarray, "n"]:
    """Whether each value is among the `count` largest; among equal values, the first ones are."""
    if not 0 < count < len(value):
        return np.full(len(value), count > 0)
    least = np.partition(value, len(value) - count)[len(value) - count]
    top = value >= least
    surplus = np.count_nonzero(top) - count
    if surplus:
        top[np.flatnonzero(value == least)[-surplus:]] = False
    return top


def _largest(value: Tensor, threshold: Tensor, count: Tensor) -> Tensor:
    """Whether each value is among the `count` largest of its row, the least of which is `threshold`."""
    above, equal = value > threshold[:, None], value == threshold[:, None]
    room = (count - above.sum(1))[:, None]
    return above | (equal & (equal.cumsum(1) <= room))


def _on_cpu(value: Tensor, inner: Tensor, outer: Tensor) -> BandColumns:
    """One row and one rank at a time: only then does NumPy take its vectorized path, which is ten times faster, and the
    row is compared with its thresholds while it is in the cache."""
    table, (rows, columns) = value.numpy(), value.shape
    high, low = np.full(rows, np.inf, table.dtype), np.full(rows, np.inf, table.dtype)
    largest = np.full(rows, -np.inf, table.dtype)
    inside, has_tie = np.zeros(table.shape, np.bool_), np.zeros(rows, np.bool_)
    first, last = inner.tolist(), outer.tolist()

    def select(row: int) -> None:
        i, o = first[row], last[row]
        if o <= i:
            return
        top, low[row] = table[row], -np.inf
        if o < columns:
            partition = np.partition(top, columns - o)
            low[row], top = partition[columns - o], partition[columns - o :]
            has_tie[row] = partition[: columns - o].max() == low[row]
        np.greater_equal(table[row], low[row], out=inside[row])
        if i > 0:
            partition = np.partition(top, o - i)
            high[row], top = partition[o - i], partition[: o - i]
        largest[row] = top.max()
        if i > 0:
            has_tie[row] |= largest[row] == high[row]
            np.logical_and(inside[row], table[row] < high[row], out=inside[row])

    over_rows(rows, columns, select)
    if has_tie.any():  # values equal to a threshold lie on both sides of it: the column decides
        row = torch.from_numpy(has_tie.nonzero()[0])
        above, upper = (
            _largest(value[row], torch.from_numpy(threshold)[row], count[row])
            for threshold, count in ((high, inner), (low, outer))
        )
        inside[row] = upper.logical_and_(~above).numpy()
    return BandColumns(torch.from_numpy(inside), torch.from_numpy(largest))


def _on_device(value: Tensor, inner: Tensor, outer: Tensor, most: int) -> BandColumns:
    """As `_on_cpu`, for all rows at once by top-k. Top-k need not sort if all rows have the same ranks, which they do
    unless pairs were dropped. Ties are broken by column in every row, since the host does not know which have ties."""
    first, last = (edge.to(value.device, non_blocking=True)[:, None] for edge in (inner, outer))
    i, o = _common_rank(inner), _common_rank(outer)
    if i is not None and o is not None and i < o:
        top = value.topk(o, dim=1, sorted=False).values
        low, head = top.amin(1, keepdim=True), top.topk(i + 1, dim=1).values
        high, largest = head[:, i - 1 : i] if i else torch.full_like(low, torch.inf), head[:, i:]
    else:
        top, empty = value.topk(max(1, most), dim=1).values, last <= first
        low = top.gather(1, (last - 1).clamp(min=0)).masked_fill(empty, torch.inf)
        high = top.gather(1, (first - 1).clamp(min=0)).masked_fill(empty | (first == 0), torch.inf)
        largest = top.gather(1, first.clamp(max=top.shape[1] - 1)).masked_fill(empty, -torch.inf)
    band = _largest(value, low[:, 0], last[:, 0])
    if i != 0:
        band.logical_and_(_largest(value, high[:, 0], first[:, 0]).logical_not_())
    return BandColumns(band, largest[:, 0])


def _common_rank(edge: Int[Tensor, "b"]) -> int | None:
    """The rank that all rows share, if it is on the CPU; otherwise `None`."""
    ranks = edge.unique().tolist() if edge.device.type == "cpu" else []
    return ranks[0] if len(ranks) == 1 else None
