"""k-means on the rows of a bank, on the bank's own device.

scikit-learn's k-means runs only on the CPU, so each clustering would copy the bank off the device and need memory for
two more copies. This one works in chunks on any device. If every process holds all rows, the processes share the
chunks, and the labels and sums are bit for bit those of one process. If each holds a share of the rows (`Rows`), it
works on that share, and sums are added up in float64.

m: rows   k: clusters   d: width
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vantage import draws, processes
from vantage.errors import UserError
from vantage.memory.rows import Rows
from vantage.processes.sharing import gather_rows, own_slice

__all__ = ["Closeness", "Distance", "InnerProduct", "add_rows", "halves", "kmeans", "lloyd", "nearest", "sums"]

_BYTES = 64 * 2**20  # size of a chunk of rows × clusters, or of rows × width


@runtime_checkable
class Closeness(Protocol):
    """How near a row is to a centroid."""

    def __call__(self, vector: Float[Tensor, "m d"], centroid: Float[Tensor, "k d"]) -> Float[Tensor, "m k"]:
        """A number for each pair; larger means nearer."""
        ...


@dataclass(frozen=True)
class Distance:
    """Euclidean distance, as in InterCLR's paper and in k-means."""

    def __call__(self, vector: Float[Tensor, "m d"], centroid: Float[Tensor, "k d"]) -> Float[Tensor, "m k"]:
        """v·c − ‖c‖²/2, which falls as ‖v − c‖² rises."""
        return torch.addmm(centroid.square().sum(1).div(-2), vector, centroid.T)


@dataclass(frozen=True)
class InnerProduct:
    """Inner product with centroids that are not normalized, as in InterCLR's release. Tight clusters have longer
    centroids, so they attract more."""

    def __call__(self, vector: Float[Tensor, "m d"], centroid: Float[Tensor, "k d"]) -> Float[Tensor, "m k"]:
        """v·c."""
        return vector @ centroid.T


def nearest(
    vector: Float[Tensor, "m d"] | Rows, centroid: Float[Tensor, "k d"], closeness: Closeness = Distance()
) -> tuple[Int[Tensor, "m"], Float[Tensor, "m"]]:
    """The nearest centroid of each row and how close it is; among equally close ones, any. The processes share the
    rows, so all of them must make the same call."""
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
    label: Int[Tensor, "m"], vector: Float[Tensor, "m d"] | Rows, clusters: int, dtype: torch.dtype | None = None
) -> tuple[Float[Tensor, "k d"], Int[Tensor, "k"]]:
    """The sum (in `dtype`, or the dtype of the rows) and the number of each label's rows, without a host sync.

    If every process holds all rows, each adds up all of them, since sharing that work would cost more. If the rows are
    sharded, each process adds up its own, and all must make the same call.
    """
    times = torch.zeros(clusters, dtype=torch.int64, device=label.device).index_add_(0, label, torch.ones_like(label))
    if not isinstance(vector, Rows):
        return _total(label, vector, clusters, dtype or vector.dtype), times
    own = label[vector.first : vector.first + len(vector.local)]
    total = processes.total(_total(own, vector.local, clusters, torch.float64))
    return total.to(dtype or vector.local.dtype), times


def _total(
    label: Int[Tensor, "m"], vector: Float[Tensor, "m d"], clusters: int, dtype: torch.dtype
) -> Float[Tensor, "k d"]:
    """The sums of `sums`, in chunks so that no second copy of the bank is needed."""
    total = vector.new_zeros(clusters, vector.shape[1], dtype=dtype)
    room = max(1, _BYTES // (vector.shape[1] * dtype.itemsize))
    for part, rows in zip(label.split(room), vector.split(room), strict=True):
        add_rows(total, part, rows)
    return total


def add_rows(total: Float[Tensor, "k d"], label: Int[Tensor, "m"], vector: Float[Tensor, "m d"]) -> None:
    """Add rows to the sums of their labels, in place and in row order, so that the result is bit for bit the same
    each time and on every process."""
    if total.device.type == "cpu":  # adds in order
        total.index_add_(0, label, vector.to(total.dtype))
    else:  # sorts, then adds in order; the atomic additions of `index_add_` come in no fixed order
        total.index_put_((label,), vector.to(total.dtype), accumulate=True)


def kmeans(
    vector: Float[Tensor, "m d"] | Rows, clusters: int, seed: int, iterations: int = 20
) -> tuple[Int[Tensor, "m"], Float[Tensor, "k d"]]:
    """Labels and centroids after Lloyd's iterations over rows of unit length. On the CPU it stops once labels no longer
    change, since further iterations would repeat the same bits; on a GPU that check would make the host wait.

    Starts from `clusters` different rows drawn by `seed`, as the papers' own library does (k-means++ would pass over
    the bank once for each cluster). The centroid of a cluster that becomes empty moves to one of the rows that are
    farthest from their centroids. Raises `UserError` for more clusters than rows.
    """
    if not 1 <= clusters <= len(vector):
        raise UserError(f"{clusters} clusters of {len(vector)} images cannot be made: ask for fewer clusters")
    start = draws.permutation(len(vector), seed)[:clusters]
    device = vector.local.device if isinstance(vector, Rows) else vector.device
    return lloyd(vector, start.to(device, non_blocking=True), iterations)


def lloyd(
    vector: Float[Tensor, "m d"] | Rows, start: Int[Tensor, "k"], iterations: int
) -> tuple[Int[Tensor, "m"], Float[Tensor, "k d"]]:
    """`kmeans` that starts from the rows `start`."""
    centroid, clusters = vector[start], len(start)
    label, close = nearest(vector, centroid)
    for _ in range(iterations):
        total, times = sums(label, vector, clusters)
        mean = total / times.clamp(min=1)[:, None]
        centroid = _without_empty(mean, times == 0, vector, close)
        last_label, (label, close) = label, nearest(vector, centroid)
        if label.device.type == "cpu" and torch.equal(last_label, label) and bool(times.all()):
            break
    return label, centroid


def halves(
    vector: Float[Tensor, "m d"], start: Int[Tensor, "2"], iterations: int, valid: Bool[Tensor, "m"]
) -> Bool[Tensor, "m"]:
    """Which rows are in the second of two clusters: `lloyd` with two centroids, in a fifth of the operations, which a
    GPU takes less time to compute than the host to start. Rows that are not `valid` do not count and are in neither.

    Two different rows always make two clusters, so a centroid is moved only if the rows `start` are equal: the second
    to the row farthest from the first. If all rows are equal, none is in the second cluster. Every process computes
    all of it, without waiting for others.
    """
    rows = torch.cat([vector, vector.new_ones(len(vector), 1)], 1).mul_(valid[:, None])  # a product also counts
    centroid = vector[start]
    apart = (vector - centroid[0]).square().sum(1).masked_fill(~valid, -1.0)
    equal = (centroid[0] == centroid[1]).all()
    second = _second(rows, torch.where(equal, vector[torch.stack([start[0], apart.argmax()])], centroid))
    for _ in range(iterations):
        weight = second.to(rows.dtype)
        total = torch.stack([1 - weight, weight]) @ rows
        last, second = second, _second(rows, total[:, :-1] / total[:, -1:].clamp(min=1))
        if second.device.type == "cpu" and torch.equal(last, second):
            break
    return second


def _second(rows: Float[Tensor, "m d1"], centroid: Float[Tensor, "2 d"]) -> Bool[Tensor, "m"]:
    """Whether each row, which ends in 1, is nearer to the second centroid."""
    first, second = torch.cat([centroid, centroid.square().sum(1, keepdim=True).div_(-2)], 1)
    return torch.mv(rows, second - first) > 0


def _without_empty(
    centroid: Float[Tensor, "k d"],
    empty: Bool[Tensor, "k"],
    vector: Float[Tensor, "m d"] | Rows,
    close: Float[Tensor, "m"],
) -> Float[Tensor, "k d"]:
    """The centroids, with those of empty clusters replaced by the rows that are farthest from their own centroids. On
    a GPU a row is fetched for every cluster, since counting the empty ones would make the host wait."""
    count = int(empty.sum()) if empty.device.type == "cpu" else len(empty)
    if not count:
        return centroid
    far = close.topk(count, largest=False).indices
    number = empty.cumsum(0).sub(1).clamp(min=0)
    return torch.where(empty[:, None], vector[far[number]], centroid)
