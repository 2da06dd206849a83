"""Work on all images, dealt out to the processes of a run: each makes its parts, and all have them in order.

Parts are dealt in turn, and exchanged as soon as each process has made one, so that no process waits longer than a part
takes. What the parts are does not depend on the number of processes, so neither do their bits.

b: rows of a part   row: axes of one   w: processes
"""

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import torch
from jaxtyping import Shaped
from torch import Tensor

from vantage import processes
from vantage.errors import UserError
from vantage.storage.arrays import AT_ONCE, Rows, cache_rows, cached_rows, open_rows

__all__ = [
    "by_first",
    "same_on_all",
    "true_on_all",
    "value_of_first",
    "parts_in_order",
    "gather_parts",
    "own_parts",
    "own_slice",
    "shared_rows",
    "sum_gradients",
    "gather_rows",
    "write_on_first",
]

T = TypeVar("T")

_STOPPED_MESSAGE = "another process of this run stopped: its message says why"


def own_parts(parts: Sequence[T]) -> Sequence[T]:
    """The parts that this process makes: every w-th, from its rank on."""
    return parts[processes.rank() :: processes.count()]


def parts_in_order(
    own: Iterator[Shaped[Tensor, "_ *row"]], count: int, row: tuple[int, ...], dtype: torch.dtype = torch.float32
) -> Iterator[Shaped[Tensor, "_ *row"]]:
    """All `count` parts in order, on every process; `own` makes those of `own_parts`. On one process, `own` itself.

    Every process must call it, and read it to the end. Where one of them fails, or stops reading, the others get a
    `UserError` when they ask for the next parts, so that none waits for it.
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
        with contextlib.suppress(RuntimeError):  # the others may have ended too
            _sizes(-1)
        raise
    _sizes(0)  # a process that failed over the last parts says so here


def gather_parts(part: Shaped[Tensor, "_ *row"]) -> list[Shaped[Tensor, "_ *row"]]:
    """One part of each process, by rank and on the device of this one; they may differ in their numbers of rows."""
    if processes.count() == 1:
        return [part]
    sizes = _sizes(len(part))
    padded = torch.zeros(max(sizes), *part.shape[1:], dtype=part.dtype, device=processes.device())
    padded[: len(part)] = part
    parts = processes.gather(padded).chunk(len(sizes)) if max(sizes) else [padded] * len(sizes)
    return [each[:size].to(part.device) for each, size in zip(parts, sizes, strict=True)]


def own_slice(count: int, rank: int | None = None) -> slice:
    """The rows of this process, or of that of a rank, where `count` rows are shared as equally as they can be, in the
    order of the ranks; all, on every process, where there are fewer rows than processes."""
    if count < processes.count():
        return slice(0, count)
    rank = processes.rank() if rank is None else rank
    return slice(*(count * each // processes.count() for each in (rank, rank + 1)))


def gather_rows(part: Shaped[Tensor, "_ *row"], count: int) -> Shaped[Tensor, "_ *row"]:
    """All `count` rows, of which every process has those that `own_slice` gives it."""
    return part if len(part) == count else torch.cat(gather_parts(part))


def true_on_all(flag: bool) -> bool:
    """Whether it is true on every process, so that all decide alike."""
    return values_of_all(int(flag)).count(0) == 0


def same_on_all(number: int) -> bool:
    """Whether all processes have the same number."""
    return len(set(values_of_all(number))) == 1


def value_of_first(number: int) -> int:
    """The number that the first process has."""
    return values_of_all(number)[0]


def values_of_all(number: int) -> list[int]:
    """The number that each process has, by rank."""
    return processes.gather(torch.tensor([number], device=processes.device())).tolist()


def by_first(make: Callable[[], T]) -> T | None:
    """What the first process makes, which the others wait for and do not have; if it fails, they get a `UserError`."""
    if processes.rank():
        if not true_on_all(True):
            raise _OtherProcessStopped(_STOPPED_MESSAGE)
        return None
    try:
        made = make()
    except BaseException:
        with contextlib.suppress(RuntimeError):  # the others may have ended too
            true_on_all(False)
        raise
    true_on_all(True)
    return made


def write_on_first(
    write: Callable[[Callable[[int], Iterator[Tensor]]], None], make: Callable[[int], Generator[Tensor, None, None]]
) -> None:
    """`write(make)` on the first process, while the others take part in `make`, which uses `parts_in_order`.

    `make` gives the parts from a row on, which `write` chooses, and may fail to: the others then have nothing to do.
    """
    if processes.rank():
        if (start := value_of_first(0)) >= 0:
            for _ in make(start):
                pass
            if value_of_first(0) < 0:
                raise _OtherProcessStopped(_STOPPED_MESSAGE)
        return
    generators: list[Generator[Tensor, None, None]] = []
    exhausted: list[bool] = []

    def parts(start: int) -> Generator[Tensor, None, None]:
        generators.append(make(value_of_first(start)))
        yield from generators[0]
        exhausted.append(True)

    succeeded = False
    try:
        write(parts)
        succeeded = True
    finally:
        for each in generators:  # a failure ends the others' work too
            each.close()
        if exhausted or not generators:
            value_of_first(0 if succeeded and exhausted else -1)  # what was written is there


def shared_rows(
    make: Rows, count: int, file: Path, resident: int, progress: Callable[[int, int], None] = lambda done, total: None
) -> Rows:
    """As `vantage.storage.arrays.cached_rows`, and made by all processes together, the same bits; the first writes
    them. A process that does not have the first one's folder makes them alone."""

    def parts(start: int) -> Generator[Tensor, None, None]:
        each = torch.arange(start, count).split(AT_ONCE)
        own = (make(numbers) for numbers in own_parts(each))
        for numbers, rows in zip(each, parts_in_order(own, len(each), tuple(row.shape[1:]), row.dtype), strict=True):
            yield rows
            progress(int(numbers[-1]) + 1, count)

    def write(parts: Callable[[int], Iterator[Tensor]]) -> None:
        cache_rows(file, (count, *row.shape[1:]), row.dtype, {}, parts)

    if processes.count() > 1 and not true_on_all(open_rows(file, count) is not None):
        row = make(torch.arange(min(count, 1)))
        write_on_first(write, parts)
    return cached_rows(make, count, file, resident, progress)


def sum_gradients(parameters: Iterable[Tensor]) -> None:
    """Make every gradient the sum of those of all processes, all of which have the same ones."""
    processes.add_up([parameter.grad for parameter in parameters if parameter.grad is not None])


class _OtherProcessStopped(UserError):
    """What a process raises because another one stopped."""


def _sizes(rows: int) -> list[int]:
    sizes = values_of_all(rows)
    if -1 in sizes and rows >= 0:
        raise _OtherProcessStopped(_STOPPED_MESSAGE)
    return sizes
