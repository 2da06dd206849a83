"""Rows by their label: the members of clusters, found without looking at every row.

m: rows   c: clusterings   b: queries   r: rows that move   k: labels that occur   w: labels in question   s: slots
f: members found
"""

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

__all__ = ["Members"]

_BITS = 40  # of a row's number; the label stands above

_MANY = 64  # where more than a 64th of the rows move at once, sorting all of them anew is cheaper


@dataclass(eq=False)
class Members:
    """An index of rows by label that lasts from step to step and follows the rows that move.

    It is a cache: the members of a cluster stand in the order of their rows, so what is found depends on the labels
    alone, nothing needs to be saved, and every process finds the same. Labels changed elsewhere (by a checkpoint, by a
    new clustering) are recognized by the tensor's own count of changes; then all rows are sorted again at the next use.
    """

    _label: Tensor | None = None
    _version: int = -1
    _order: Tensor = field(default_factory=lambda: torch.zeros(1, dtype=torch.int64))
    _sorted: list["_LabelIndex | _DeviceIndex"] = field(default_factory=list)

    def find(
        self, label: Int[Tensor, "m c"], query_label: Int[Tensor, "b c"]
    ) -> tuple[Int[Tensor, "b c"], Int[Tensor, "b c"]]:
        """Where the members of these clusters begin, as places for `rows`; and how many there are."""
        if not self._follows(label):
            self._sort(label)
        spans = [one.find(mine) for one, mine in zip(self._sorted, query_label.T, strict=True)]
        return torch.stack([start for start, _ in spans], 1), torch.stack([size for _, size in spans], 1)

    def rows(self, place: Int[Tensor, "*p"]) -> Int[Tensor, "*p"]:
        """The rows that stand at these places; any row for a place that is no member's."""
        return self._order[place.clamp(max=len(self._order) - 1)]

    def same_cluster(
        self, label: Int[Tensor, "m c"], query_label: Int[Tensor, "b c"], most: int
    ) -> tuple[Int[Tensor, "f"], Int[Tensor, "f"]] | None:
        """Query and row of every pair that some clustering joins, or nothing where there are more than `most`, or where
        a device would have to be asked how many."""
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
        """Give rows other labels, and follow them if `label` is the one clustering that was looked up before."""
        if label.device.type != "cpu":  # sorted at the next use, which is quick there
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
    """Rows sorted by label on a device: sorted again after each change, since whatever follows changes asks how many
    there are, for which the device would have to be waited for."""

    order: Int[Tensor, "m"]
    label: Int[Tensor, "m"]

    begin: int = 0
    """Place of the first row among those of all clusterings."""

    @classmethod
    def of(cls, label: Int[Tensor, "m"]) -> "_DeviceIndex":
        """All rows sorted."""
        label, row = label.sort(stable=True)
        return cls(row, label)

    def find(self, label: Int[Tensor, "w"]) -> tuple[Int[Tensor, "w"], Int[Tensor, "w"]]:
        """Place and number of each label's rows."""
        start = torch.searchsorted(self.label, label.contiguous())
        return self.begin + start, torch.searchsorted(self.label, label.contiguous(), right=True) - start


@dataclass(eq=False)
class _LabelIndex:
    """Rows label by label, those of one label in order, with room behind them."""

    order: Int[Tensor, "s"]
    value: Int[Tensor, "k"]
    start: Int[Tensor, "k"]
    size: Int[Tensor, "k"]
    room: Int[Tensor, "k"]
    free: int
    """The first slot that was given to no label."""

    begin: int = 0
    """Place of the first slot among those of all clusterings."""

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
        """Place and number of each label's rows."""
        place, present = _look_up(self.value, label)
        return self.begin + self.start[place], torch.where(present, self.size[place], 0)

    def move(self, row: Int[Tensor, "r"], before: Int[Tensor, "r"], after: Int[Tensor, "r"]) -> bool:
        """Rows, in order, leave one label for another. False where this index cannot follow: all must be sorted."""
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
    """For every member of clusters of these sizes that begin at these slots, which cluster's it is and its slot."""
    which = torch.arange(len(size), device=size.device).repeat_interleave(size)
    return which, (start - size.cumsum(0) + size)[which] + torch.arange(len(which), device=size.device)


def _merge(numbers: Int[Tensor, "f"], goes: Int[Tensor, "r"], comes: Int[Tensor, "r"]) -> Int[Tensor, "f"]:
    """Numbers in order, without some of them and with as many others: cheaper than sorting them all."""
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
    """Where numbers stand among ordered ones, and whether they do."""
    place = torch.searchsorted(numbers, number.contiguous()).clamp(max=len(numbers) - 1)
    return place, numbers[place] == number


def _each_once(row: Int[Tensor, "r"]) -> tuple[Int[Tensor, "u"], Int[Tensor, "u"]]:
    """Rows in order without repetition, and where each stands last."""
    row, place = row.sort(stable=True)
    last = torch.ones_like(row, dtype=torch.bool)
    last[:-1] = row[1:] != row[:-1]
    return row[last], place[last]
