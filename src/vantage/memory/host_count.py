"""Saved numbers that the host knows without reading them, so that it does not have to wait for a device."""

from torch import Tensor

__all__ = ["HostCount"]


class HostCount:
    """What the host knows of a count in a store's buffer, which only grows if at all: bounds, exact after a reading.

    Not state: a buffer that somebody else has written (a checkpoint) or replaced (a move to a device) is read again.
    """

    def __init__(self) -> None:
        self._buffer: Tensor | None = None
        self._version = -1
        self._least = self._most = 0

    def exact(self, buffer: Tensor) -> int:
        """Its value; read where the bounds are apart, or where somebody else wrote it."""
        self._follow(buffer)
        if self._least < self._most:
            self._read(buffer)
        return self._most

    def lower_bound(self, buffer: Tensor) -> int:
        """A value that it has reached, without a reading."""
        self._follow(buffer)
        return self._least

    def at_least(self, buffer: Tensor, value: int) -> bool:
        """Whether it is at least `value`; read only where the bounds leave that open."""
        self._follow(buffer)
        if self._least < value <= self._most:
            self._read(buffer)
        return self._most >= value

    def add(self, buffer: Tensor, number: Tensor | int, most: int) -> None:
        """Count further, in place: `number`, which the host does not read, but which is `most` at most."""
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
