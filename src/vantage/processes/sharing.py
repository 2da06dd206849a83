"""Share work on all images among the processes of a run: each makes some of the parts, and all receive every part.

Parts are dealt in turn, and exchanged as soon as each process has made one, so no process waits longer than one part
takes. The parts are the same, bit for bit, on any number of processes.

b: rows of a part   row: axes of one row   w: processes
"""

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TypeVar

import torch
from jaxtyping import Shaped
from torch import Tensor

from vantage import processes
from vantage.errors import UserError

__all__ = [
    "by_first",
    "gather_parts",
    "gather_rows",
    "own_parts",
    "own_slice",
    "parts_in_order",
    "same_on_all",
    "sum_gradients",
    "true_on_all",
    "value_of_first",
    "write_on_first",
]

T = TypeVar("T")

_STOPPED_MESSAGE = "another process of this run stopped: its message says why"


def own_parts(parts: Sequence[T]) -> Sequence[T]:
    """The parts that this process makes: every w-th part, starting at its rank."""
    return parts[processes.rank() :: processes.count()]


def parts_in_order(
    own: Iterator[Shaped[Tensor, "_ *row"]], count: int, row: tuple[int, ...], dtype: torch.dtype = torch.float32
) -> Iterator[Shaped[Tensor, "_ *row"]]:
    """All `count` parts in order, on every process; `own` makes those of `own_parts`. With one process, just `own`.

    Every process must call it and read it to the end. If one of them fails or stops reading, the others get a
    `UserError` when they ask for the next parts, so none waits forever.
    """
    if processes.count() == 1:
        yield from own
        return
    nothing = torch.empty(0, *row, dtype=dtype)
    try:
        for first in range(0, count, processes.count()):
            here = min(processes.count(), count - first)
            part = next(own) if processes.rank() < here else nothing
            yield from gather_parts(part)[:here]
    except _OtherProcessStopped:
        raise
    except (Exception, GeneratorExit):
        with contextlib.suppress(RuntimeError):  # the others may have stopped too
            _sizes(-1)
        raise
    _sizes(0)  # a process that failed after the last parts reports it here


def gather_parts(part: Shaped[Tensor, "_ *row"]) -> list[Shaped[Tensor, "_ *row"]]:
    """One part from each process, by rank and on this process's device; the numbers of rows may differ."""
    if processes.count() == 1:
        return [part]
    sizes = _sizes(len(part))
    block = torch.zeros(max(sizes), *part.shape[1:], dtype=part.dtype, device=processes.device())
    block[: len(part)] = part
    parts = processes.gather(block).chunk(len(sizes)) if max(sizes) else [block] * len(sizes)
    return [each[:size].to(part.device) for each, size in zip(parts, sizes, strict=True)]


def own_slice(count: int, rank: int | None = None) -> slice:
    """The rows of this process, or of the process with rank `rank`, if `count` rows are shared as evenly as possible in
    the order of the ranks. With fewer rows than processes, every process has all rows."""
    if count < processes.count():
        return slice(0, count)
    rank = processes.rank() if rank is None else rank
    return slice(*(count * each // processes.count() for each in (rank, rank + 1)))


def gather_rows(part: Shaped[Tensor, "_ *row"], count: int) -> Shaped[Tensor, "_ *row"]:
    """All `count` rows; `part` holds the rows that `own_slice` gives this process."""
    return part if len(part) == count else torch.cat(gather_parts(part))


def true_on_all(flag: bool) -> bool:
    """Whether the flag is true on every process, so that all decide alike."""
    return values_of_all(int(flag)).count(0) == 0


def same_on_all(number: int) -> bool:
    """Whether all processes have the same number."""
    return len(set(values_of_all(number))) == 1


def value_of_first(number: int) -> int:
    """The first process's number."""
    return values_of_all(number)[0]


def values_of_all(number: int) -> list[int]:
    """The number of each process, by rank."""
    return processes.gather(torch.tensor([number], device=processes.device())).tolist()


def by_first(make: Callable[[], T]) -> T | None:
    """The result of `make` on the first process. The others wait for it and get None, or a `UserError` if it fails."""
    if processes.rank():
        if not true_on_all(True):
            raise _OtherProcessStopped(_STOPPED_MESSAGE)
        return None
    try:
        result = make()
    except BaseException:
        with contextlib.suppress(RuntimeError):  # the others may have stopped too
            true_on_all(False)
        raise
    true_on_all(True)
    return result


def write_on_first(
    write: Callable[[Callable[[int], Iterator[Tensor]]], None], make: Callable[[int], Generator[Tensor, None, None]]
) -> None:
    """Run `write(make)` on the first process, while the others take part in `make`, which uses `parts_in_order`.

    `make(start)` yields the parts from row `start` on. `write` chooses `start`. If it never calls `make`, the others
    have nothing to do.
    """
    if processes.rank():
        if (start := value_of_first(0)) >= 0:
            for _ in make(start):
                pass
            if value_of_first(0) < 0:
                raise _OtherProcessStopped(_STOPPED_MESSAGE)
        return
    generators: list[Generator[Tensor, None, None]] = []
    ends: list[bool] = []

    def parts(start: int) -> Generator[Tensor, None, None]:
        generators.append(make(value_of_first(start)))
        yield from generators[0]
        ends.append(True)

    is_written = False
    try:
        write(parts)
        is_written = True
    finally:
        for each in generators:  # a failure stops the other processes too
            each.close()
        if ends or not generators:
            value_of_first(0 if is_written and ends else -1)  # whether everything has been written


def sum_gradients(parameters: Iterable[Tensor]) -> None:
    """Replace every gradient by its sum over all processes, which must all have the same gradients."""
    processes.add_up([parameter.grad for parameter in parameters if parameter.grad is not None])


class _OtherProcessStopped(UserError):
    """Raised on a process because another one stopped."""


def _sizes(rows: int) -> list[int]:
    sizes = values_of_all(rows)
    if -1 in sizes and rows >= 0:
        raise _OtherProcessStopped(_STOPPED_MESSAGE)
    return sizes
