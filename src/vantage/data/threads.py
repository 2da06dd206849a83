"""Things that are made in threads, some ahead of what they are needed for."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["made_ahead"]

Key = TypeVar("Key")
Made = TypeVar("Made")


def made_ahead(
    make: Callable[[Key], Made], parts: Iterable[Sequence[Key]], workers: int, ahead: int
) -> Iterator[list[Made]]:
    """For each part, in order, what `make` gives for its keys; `ahead` parts more are in the making.

    Threads, since decoders and resizing let go of the interpreter. An exception of `make` comes out here.
    """
    with ThreadPoolExecutor(max(1, workers)) as pool:
        waiting: deque[list[Future[Made]]] = deque()
        try:
            for part in parts:
                waiting.append([pool.submit(make, key) for key in part])
                if len(waiting) > ahead:
                    yield [future.result() for future in waiting.popleft()]
            while waiting:
                yield [future.result() for future in waiting.popleft()]
        finally:  # after a failure, or when nobody wants the rest
            for futures in waiting:
                for future in futures:
                    future.cancel()
