"""Threads: how many processors they may use, and work that they do in advance."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["CORES", "prefetch"]

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
    with ThreadPoolExecutor(max(1, num_workers)) as pool:
        waiting: deque[list[Future[Value]]] = deque()
        try:
            for part in parts:
                waiting.append([pool.submit(make, key) for key in part])
                if len(waiting) > ahead:
                    yield [future.result() for future in waiting.popleft()]
            while waiting:
                yield [future.result() for future in waiting.popleft()]
        finally:  # after a failure, or when the caller stops early
            for futures in waiting:
                for future in futures:
                    future.cancel()
