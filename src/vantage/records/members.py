"""An index of rows by label, which finds the members of clusters without looking at every row.

m: rows   c: clusterings   b: queries   r: rows that move   k: labels that occur   w: labels looked up   s: slots
f: members found
"""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

__all__ = ["Members"]

_BITS = 40  # low bits of a combined number that hold the row; the label is above them

_MANY = 64  # if more than a 64th of the rows move at once, sorting all of them again is cheaper


@dataclass(eq=False)
class Members:
    """An index of rows by label that is kept from step to step and updated as rows move.

    It is a cache. The members of a cluster are listed in row order, so results depend only on the labels: nothing needs
    to be saved, and every process finds the same. If something else changes the labels (a checkpoint, a new
    clustering), the tensor's version counter shows it, and all rows are sorted again at the next use.
    """

    _label: Tensor | None = None
    _version: int = -1
    _order: Tensor = field(default_factory=lambda: torch.zeros(1, dtype=torch.int64))
    _sorted: list["_LabelIndex | _DeviceIndex"] = field(default_factory=list)

    def find(
        self, label: Int[Tensor, "m c"], query_label: Int[Tensor, "b c"]
    ) -> tuple[Int[Tensor, "b c"], Int[Tensor, "b c"]]:
        """Where the members of these clusters begin, as places for `rows`, and how many each cluster has."""
        if not self._follows(label):
            self._sort(label)
        spans = [one.find(mine) for one, mine in zip(self._sorted, query_label.T, strict=True)]
        return torch.stack([start for start, _ in spans], 1), torch.stack([size for _, size in spans], 1)

    def rows(self, place: Int[Tensor, "*p"]) -> Int[Tensor, "*p"]:
        """The rows at these places; an arbitrary row for a place that belongs to no member."""
        return self._order[place.clamp(max=len(self._order) - 1)]

    def same_cluster(
        self, label: Int[Tensor, "m c"], query_label: Int[Tensor, "b c"], most: int
    ) -> tuple[Int[Tensor, "f"], Int[Tensor, "f"]] | None:
        """Query and row of every pair that shares a cluster in some clustering. `None` if there are more than `most`
        pairs, and on a GPU, where the host would have to wait for their number."""
        if label.device.type != "cpu":
            return None
        start, size = self.find(label, query_label)
        if int(size.sum()) > most:
            return None
        which, slot = _slots_of_members(size.T.flatten(), start.T.flatten())
        return which % max(1, len(query_label)), self.rows(slot)

    def _sort(self, label: Int[Tensor, "m c"]) -> None:
        kind = _LabelIndex if label.device.type == "cpu" else _DeviceIndex
        parts = [kind.of(column) for column in label.T]
        self._label, self._version, self._order = label, label._version, torch.cat([part.order for part in parts])
        first = [sum(len(part.order) for part in parts[:number]) for number in range(len(parts))]
        self._sorted = [
            replace(part, order=self._order[begin : begin + len(part.order)], begin=begin)
            for part, begin in zip(parts, first, strict=True)
        ]

    def move(self, label: Int[Tensor, "m"], row: Int[Tensor, "r"], to: Int[Tensor, "r"]) -> None:
        """Give rows new labels. The index follows if it was built from `label` and there is only one clustering."""
        if label.device.type != "cpu":  # sorted again at the next use, which is quick on a GPU
            label[row] = to
            return
        follow = self._follows(label) and len(self._sorted) == 1
        row, last = _each_once(row)
        before, after = label[row], to[last]
        label[row] = after
        away = (before != after).nonzero()[:, 0]
        few = len(away) * _MANY <= len(label)
        index = self._sorted[0] if follow and few else None
        if isinstance(index, _LabelIndex) and index.move(row[away], before[away], after[away]):
            self._version = label._version

    def _follows(self, label: Tensor) -> bool:
        same = self._label is not None and (label is self._label or label._base is self._label)
        return same and label._version == self._version


@dataclass(eq=False)
class _DeviceIndex:
    """Rows sorted by label on a GPU. They are sorted again after each change: an update would need the number of moved
    rows, for which the host would have to wait."""

    order: Int[Tensor, "m"]
    label: Int[Tensor, "m"]

    begin: int = 0
    """Place of this clustering's first row among those of all clusterings."""

    @classmethod
    def of(cls, label: Int[Tensor, "m"]) -> "_DeviceIndex":
        """All rows sorted."""
        label, row = label.sort(stable=True)
        return cls(row, label)

    def find(self, label: Int[Tensor, "w"]) -> tuple[Int[Tensor, "w"], Int[Tensor, "w"]]:
        """Where each label's rows begin, and how many there are."""
        start = torch.searchsorted(self.label, label.contiguous())
        return self.begin + start, torch.searchsorted(self.label, label.contiguous(), right=True) - start


@dataclass(eq=False)
class _LabelIndex:
    """Rows grouped by label, each group in row order with free slots after it."""

    order: Int[Tensor, "s"]
    value: Int[Tensor, "k"]
    start: Int[Tensor, "k"]
    size: Int[Tensor, "k"]
    room: Int[Tensor, "k"]
    free: int
    """The first slot that belongs to no label."""

    begin: int = 0
    """Place of this clustering's first slot among those of all clusterings."""

    @classmethod
    def of(cls, label: Int[Tensor, "m"]) -> "_LabelIndex":
        """All rows sorted."""
        label, row = label.sort(stable=True)
        value, size = label.unique_consecutive(return_counts=True)
        room = _with_room(size)
        start, free = room.cumsum(0) - room, int(room.sum())
        order = row.new_zeros(free + len(row) // 2 + 1)
        order[_slots_of_members(size, start)[1]] = row
        return cls(order, value, start, size, room, free)

    def find(self, label: Int[Tensor, "w"]) -> tuple[Int[Tensor, "w"], Int[Tensor, "w"]]:
        """Where each label's rows begin, and how many there are."""
        place, present = _look_up(self.value, label)
        return self.begin + self.start[place], torch.where(present, self.size[place], 0)

    def move(self, row: Int[Tensor, "r"], before: Int[Tensor, "r"], after: Int[Tensor, "r"]) -> bool:
        """Move rows, given in order, from one label to another. Returns false if this index cannot be updated, so that
        all rows must be sorted again."""
        if not len(row):
            return True
        labels, label = torch.cat([before, after]).unique(return_inverse=True)
        place, present = _look_up(self.value, labels)
        if not bool(present.all()):
            return False
        goes, comes = label.chunk(2)
        size, change = self.size[place], comes.bincount(minlength=len(labels))
        which, slot = _slots_of_members(size, self.start[place])
        member = _merge((which << _BITS) + self.order[slot], (goes << _BITS) + row, (comes << _BITS) + row)
        size = size + change - goes.bincount(minlength=len(labels))
        room = torch.where(size > self.room[place], _with_room(size), 0)
        more = int(room.sum())
        if self.free + more > len(self.order):
            return False
        start = torch.where(room > 0, self.free + room.cumsum(0) - room, self.start[place])
        self.free += more
        self.start[place], self.size[place] = start, size
        self.room[place] = torch.maximum(room, self.room[place])
        self.order[_slots_of_members(size, start)[1]] = member & ((1 << _BITS) - 1)
        return True


def _with_room(size: Int[Tensor, "k"]) -> Int[Tensor, "k"]:
    return size + size // 4 + 4


def _slots_of_members(size: Int[Tensor, "w"], start: Int[Tensor, "w"]) -> tuple[Int[Tensor, "f"], Int[Tensor, "f"]]:
    """For every member of clusters with these sizes and first slots: the number of its cluster, and its slot."""
    which = torch.arange(len(size), device=size.device).repeat_interleave(size)
    return which, (start - size.cumsum(0) + size)[which] + torch.arange(len(which), device=size.device)


def _merge(numbers: Int[Tensor, "f"], goes: Int[Tensor, "r"], comes: Int[Tensor, "r"]) -> Int[Tensor, "f"]:
    """Sorted numbers with those of `goes` removed and as many of `comes` inserted; cheaper than sorting them all."""
    stays = torch.ones_like(numbers, dtype=torch.bool)
    stays[torch.searchsorted(numbers, goes)] = False
    numbers, comes = numbers[stays], comes.sort().values
    old = torch.ones_like(stays)
    new = torch.searchsorted(numbers, comes) + torch.arange(len(comes), device=comes.device)
    old[new] = False
    result = comes.new_empty(len(old))
    result[new], result[old] = comes, numbers
    return result


def _look_up(numbers: Int[Tensor, "k"], number: Int[Tensor, "r"]) -> tuple[Int[Tensor, "r"], Bool[Tensor, "r"]]:
    """The places of numbers among sorted ones, and whether each of them is present."""
    place = torch.searchsorted(numbers, number.contiguous()).clamp(max=len(numbers) - 1)
    return place, numbers[place] == number


def _each_once(row: Int[Tensor, "r"]) -> tuple[Int[Tensor, "u"], Int[Tensor, "u"]]:
    """The distinct rows in order, and the place of each one's last occurrence."""
    row, place = row.sort(stable=True)
    last = torch.ones_like(row, dtype=torch.bool)
    last[:-1] = row[1:] != row[:-1]
    return row[last], place[last]
