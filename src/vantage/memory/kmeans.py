"""k-means on the rows of a bank, on the bank's own device.

scikit-learn's k-means runs on the CPU alone, so each clustering would copy the bank off the device and hold it twice
more; this one works in chunks on any device. Where the processes of a run all hold the rows, they share the chunks, and
get the labels and sums of one process, bit by bit. Where each holds its share (`Rows`), it works on that, and sums are
added up in float64.

m: rows   k: clusters   u: clusters that occur   d: width
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage import processes
from vantage.errors import UserError
from vantage.memory.rows import Rows
from vantage.sharing import gather_rows, own_slice

__all__ = ["Closeness", "Distance", "InnerProduct", "add_rows", "kmeans", "nearest", "sums"]

_BYTES = 64 * 2**20  # a chunk of rows × clusters, or of rows × width


@runtime_checkable
class Closeness(Protocol):
    """How near a row is to a centroid."""

    def __call__(self, vector: Float[Tensor, "m d"], centroid: Float[Tensor, "k d"]) -> Float[Tensor, "m k"]:
        """A number for each pair, larger where they are nearer."""
        ...


@dataclass(frozen=True)
class Distance:
    """Euclidean distance, as InterCLR's paper and k-means have it."""

    def __call__(self, vector: Float[Tensor, "m d"], centroid: Float[Tensor, "k d"]) -> Float[Tensor, "m k"]:
        """v·c − ‖c‖²/2, which falls as ‖v − c‖² rises."""
        return torch.addmm(centroid.square().sum(1).div(-2), vector, centroid.T)


@dataclass(frozen=True)
class InnerProduct:
    """Inner product with centroids that are not normalized, as InterCLR's release has it: tight clusters, whose
    centroids are longer, attract more."""

    def __call__(self, vector: Float[Tensor, "m d"], centroid: Float[Tensor, "k d"]) -> Float[Tensor, "m k"]:
        """v·c."""
        return vector @ centroid.T


def nearest(
    vector: Float[Tensor, "m d"] | Rows, centroid: Float[Tensor, "k d"], closeness: Closeness = Distance()
) -> tuple[Int[Tensor, "m"], Float[Tensor, "m"]]:
    """The nearest centroid of each row and how close it is; of equally close ones, any. Where there are many rows, the
    processes share them, and all must ask for the same."""
    chunk = max(1, _BYTES // (max(1, len(centroid)) * centroid.element_size()))
    if isinstance(vector, Rows):
        rows = vector.local
    else:
        share = own_slice(-(-len(vector) // chunk))
        rows = vector[chunk * share.start : chunk * share.stop]
    best = [closeness(part, centroid).max(1) for part in rows.split(chunk)]
    label, close = torch.cat([part.indices for part in best]), torch.cat([part.values for part in best])
    return gather_rows(label, len(vector)), gather_rows(close, len(vector))


def sums(
    label: Int[Tensor, "m"], vector: Float[Tensor, "m d"] | Rows, dtype: torch.dtype | None = None
) -> tuple[Int[Tensor, "u"], Float[Tensor, "u d"], Int[Tensor, "u"]]:
    """The labels that occur, in order, and the sum (in `dtype`, or the rows' own) and number of rows of each.

    Rows are added label by label in their order, so that every device and process gets the same bits each time; atomic
    additions would not give that. Where there are many rows, the processes share the labels, and all must ask for the
    same.
    """
    if isinstance(vector, Rows):
        return _sums_of_shares(label, vector, dtype or vector.local.dtype)
    dtype = dtype or vector.dtype
    place = label.argsort(stable=True)
    unique, times = label[place].unique_consecutive(return_counts=True)
    room = max(1, _BYTES // (vector.shape[1] * dtype.itemsize))
    parts = [(place, times)] if 0 < len(place) <= room else list(_in_parts(place, times, room))
    totals = [vector.new_zeros(0, vector.shape[1], dtype=dtype)]
    for rows, lengths in parts[own_slice(len(parts))]:
        totals.append(torch.segment_reduce(vector[rows].to(dtype), "sum", lengths=lengths, axis=0))
    return unique, gather_rows(torch.cat(totals), len(unique)), times


def _sums_of_shares(
    label: Int[Tensor, "m"], rows: Rows, dtype: torch.dtype
) -> tuple[Int[Tensor, "u"], Float[Tensor, "u d"], Int[Tensor, "u"]]:
    """`sums` of rows that are dealt out: each process adds up its own."""
    unique, times = label.unique(return_counts=True)
    place = torch.searchsorted(unique, label[rows.first : rows.first + len(rows.local)])
    total = rows.local.new_zeros(len(unique), rows.local.shape[1], dtype=torch.float64)
    room = max(1, _BYTES // (rows.local.shape[1] * total.element_size()))
    for part, own in zip(place.split(room), rows.local.split(room), strict=True):
        add_rows(total, part, own)
    return unique, processes.total(total).to(dtype), times


def add_rows(total: Float[Tensor, "k d"], label: Int[Tensor, "m"], vector: Float[Tensor, "m d"]) -> None:
    """Add rows to the sums of their labels, in place; the same bits each time and on every process."""
    if total.device.type == "cpu":  # adds in order, in a fifth of the time that sorting takes
        total.index_add_(0, label, vector.to(total.dtype))
    else:  # sorts, then adds in order, unlike `index_add_`; and does not wait, unlike `sums`
        total.index_put_((label,), vector.to(total.dtype), accumulate=True)


def _in_parts(
    place: Int[Tensor, "m"], times: Int[Tensor, "u"], room: int
) -> Iterator[tuple[Int[Tensor, "p"], Int[Tensor, "v"]]]:
    """Whole clusters to a part, about `room` rows each, so that no second bank is held."""
    part = (times.cumsum(0) - times) // room
    return zip(place.split(_per_part(part, times)), times.split(_per_part(part, torch.ones_like(times))), strict=True)


def _per_part(part: Int[Tensor, "u"], weight: Int[Tensor, "u"]) -> list[int]:
    """Σ weight of each part, parts in order."""
    _, size = part.unique_consecutive(return_counts=True)
    return [int(part.sum()) for part in weight.split(size.tolist())]


def kmeans(
    vector: Float[Tensor, "m d"] | Rows, clusters: int, seed: int, iterations: int = 20
) -> tuple[Int[Tensor, "m"], Float[Tensor, "k d"]]:
    """Labels and centroids after Lloyd's iterations, fewer if labels no longer change; rows have unit length.

    Starts from `clusters` different rows drawn by `seed` (as the papers' own library does; k-means++ would pass over
    the bank once for each cluster). A cluster that is left empty moves to the row farthest from its centroid. Raises
    `UserError` for more clusters than rows.
    """
    if not 1 <= clusters <= len(vector):
        raise UserError(f"{clusters} clusters of {len(vector)} images cannot be made: ask for fewer clusters")
    start = torch.randperm(len(vector), generator=torch.Generator().manual_seed(seed))[:clusters]
    device = vector.local.device if isinstance(vector, Rows) else vector.device
    centroid = vector[start.to(device)]
    label, close = nearest(vector, centroid)
    for _ in range(iterations):
        unique, total, times = sums(label, vector)
        centroid = centroid.clone()
        centroid[unique] = total / times[:, None]
        empty = torch.ones(clusters, dtype=torch.bool, device=device).index_fill_(0, unique, False)
        empty_count = int(empty.sum())
        if empty_count:
            centroid[empty] = vector[close.topk(empty_count, largest=False).indices]
        last_label, (label, close) = label, nearest(vector, centroid)
        if not empty_count and torch.equal(last_label, label):
            break
    return label, centroid
