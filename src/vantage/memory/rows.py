"""A store with a row for each image: all of them on every process, or each process's share of them.

m: images   s: rows here   d: width   r: rows
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn.functional import normalize

from vantage import processes
from vantage.memory.store import Store
from vantage.processes.sharing import own_slice
from vantage.records import Keys, rows_here

__all__ = ["Rows", "RowStore", "at_first", "random_rows"]

_AT_ONCE = 2**16  # rows drawn, or sent, at a time


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a sharded bank; consecutive rows belong to consecutive processes. `rows[numbers]` fetches any rows,
    if every process requests the same ones."""

    local: Float[Tensor, "s d"]
    """The rows of this process."""

    first: int
    """Number of the first row of this process."""

    count: int
    """Number of rows on all processes together."""

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: Int[Tensor, "r"]) -> Float[Tensor, "r d"]:
        local, mine = rows_here(row, self.first, len(self.local))
        return processes.total(self.local[local] * mine[:, None])


class RowStore(Store):
    """A store whose row i belongs to image i, saved in checkpoints. If `sharded`, each process holds only the rows of
    its share of the images.

    In that case `state_dict` is a collective call. It gives all rows on the first process, in host memory, and on the
    others only their shape (on the meta device). `load_state_dict` takes all rows. So checkpoints do not depend on the
    number of processes.
    """

    vector: Tensor
    image: Tensor

    def __init__(self, images: int, width: int, sharded: bool) -> None:
        super().__init__()
        self.images, self._share = images, slice(0, images)
        if sharded and 1 < processes.count() <= images:
            self._share = own_slice(images)
            self.register_state_dict_post_hook(_make_whole)
            self.register_load_state_dict_pre_hook(_take_share)
        self.register_buffer("vector", random_rows(images, width, self.share))
        self.register_buffer("image", torch.arange(images)[self.share].clone())

    @property
    def room(self) -> int:
        """One key for every image."""
        return self.images

    @property
    def share(self) -> slice:
        """The rows that this process holds."""
        return self._share

    @property
    def is_sharded(self) -> bool:
        """Whether each process holds only a share of the rows."""
        return len(self.vector) < self.images

    @property
    def rows(self) -> Tensor | Rows:
        """All rows, indexed by number."""
        return Rows(self.vector, self.share.start, self.images) if self.is_sharded else self.vector

    @torch.no_grad()
    def begin(self, keys: Keys) -> None:
        """Replace the rows of this process."""
        self.vector.copy_(keys.vector)


def random_rows(images: int, width: int, share: slice) -> Float[Tensor, "s d"]:
    """A share of `images` unit vectors, uniform in the cube before they are normalized. All are drawn and only the
    share is kept, so that the rows do not depend on the number of processes."""
    if share == slice(0, images):
        return normalize(torch.rand(images, width) * 2 - 1, dim=1)
    rows = torch.empty(share.stop - share.start, width)
    for start in range(0, images, _AT_ONCE):
        block = torch.rand(min(_AT_ONCE, images - start), width)
        first, last = max(share.start, start), min(share.stop, start + len(block))
        if first < last:
            rows[first - share.start : last - share.start] = block[first - start : last - start]
    return normalize(rows * 2 - 1, dim=1)


def at_first(local: Shaped[Tensor, "s *row"], count: int) -> Shaped[Tensor, "m *row"]:
    """All `count` rows on the first process, in host memory; on the others a meta tensor of the same shape."""
    if local.is_meta:  # a network built only for its shapes: there is nothing to exchange
        return local.new_empty(count, *local.shape[1:])
    first = processes.rank() == 0
    whole = torch.empty(count, *local.shape[1:], dtype=local.dtype, device="cpu" if first else "meta")
    shares = [own_slice(count, rank) for rank in range(processes.count())]
    longest = max(share.stop - share.start for share in shares)
    for begin in range(0, longest, _AT_ONCE):
        part = local[begin : begin + _AT_ONCE]
        block = torch.zeros(
            min(_AT_ONCE, longest - begin), *local.shape[1:], dtype=local.dtype, device=processes.device()
        )
        block[: len(part)] = part
        blocks = [torch.empty_like(block) for _ in shares] if first else None
        dist.gather(block, blocks)
        for share, rows in zip(shares, blocks or [], strict=False):
            place = whole[share][begin : begin + len(block)]
            place.copy_(rows[: len(place)])
    return whole


def _make_whole(store: nn.Module, state: dict[str, Any], prefix: str, _: Any) -> None:
    assert isinstance(store, RowStore)
    for name in ("vector", "image"):
        state[prefix + name] = at_first(state[prefix + name], store.images)


def _take_share(store: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    assert isinstance(store, RowStore)
    for name in (prefix + "vector", prefix + "image"):
        if name in state and len(state[name]) == store.images:
            state[name] = state[name][store.share]
