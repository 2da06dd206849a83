"""Threads: how many processors they may use, and work that they do in advance."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["CORES", "prefetch"]

_TOGETHER = 8
"""Keys of one task. Handing a task to a thread takes as long as decoding a small image."""

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Processors that this process may use."""

Key = TypeVar("Key")
Value = TypeVar("Value")


def prefetch(
    make: Callable[[Key], Value], parts: Iterable[Sequence[Key]], num_workers: int, ahead: int
) -> Iterator[list[Value]]:
    """For each part, in order, the values that `make` returns for its keys, while `ahead` further parts are computed.

    Threads suffice, since decoders and resizing release the interpreter's lock. An exception of `make` is raised here.
    """

    def make_all(keys: Sequence[Key]) -> list[Value]:
        return [make(key) for key in keys]

    workers = max(1, num_workers)
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[list[Future[list[Value]]]] = deque()
        try:
            for part in parts:
                step = min(_TOGETHER, -(-len(part) // workers)) or 1
                waiting.append([pool.submit(make_all, part[at : at + step]) for at in range(0, len(part), step)])
                if len(waiting) > ahead:
                    yield [value for future in waiting.popleft() for value in future.result()]
            while waiting:
                yield [value for future in waiting.popleft() for value in future.result()]
        finally:  # after a failure, or when the caller stops early
            for futures in waiting:
                for future in futures:
                    future.cancel()
