"""Counters in buffers whose value the host tracks, so that it does not have to wait for a GPU to read them."""

from torch import Tensor

__all__ = ["HostCount"]


class HostCount:
    """Lower and upper bounds on a counter in a store's buffer, which never decreases; reading it makes them exact.

    The bounds are a cache, not state: after any other write (a checkpoint) or a move to a device the buffer is read
    again.
    """

    def __init__(self) -> None:
        self._buffer: Tensor | None = None
        self._version = -1
        self._least = self._most = 0

    def exact(self, buffer: Tensor) -> int:
        """The counter's value; the buffer is read only if the bounds differ, or if something else wrote it."""
        self._follow(buffer)
        if self._least < self._most:
            self._read(buffer)
        return self._most

    def lower_bound(self, buffer: Tensor) -> int:
        """A value that the counter has reached for sure; the bounds are not tightened by a read."""
        self._follow(buffer)
        return self._least

    def at_least(self, buffer: Tensor, value: int) -> bool:
        """Whether the counter is at least `value`; the buffer is read only if the bounds leave that open."""
        self._follow(buffer)
        if self._least < value <= self._most:
            self._read(buffer)
        return self._most >= value

    def add(self, buffer: Tensor, number: Tensor | int, most: int) -> None:
        """Add `number` to the buffer, in place. If it is a tensor, the host does not read it and only uses that it is
        at most `most`."""
        self._follow(buffer)
        buffer.add_(number)
        self._most += most
        self._least += number if isinstance(number, int) else 0
        self._version = buffer._version

    def _follow(self, buffer: Tensor) -> None:
        if buffer is not self._buffer or buffer._version != self._version:
            self._read(buffer)

    def _read(self, buffer: Tensor) -> None:
        self._least = self._most = int(buffer)
        self._buffer, self._version = buffer, buffer._version
