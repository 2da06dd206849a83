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
from vantage.storage.arrays import AT_ONCE, Rows, kept_rows, made_rows, open_rows

__all__ = [
    "alike",
    "by_first",
    "everywhere",
    "from_first",
    "in_order",
    "joined",
    "own_turns",
    "share_of",
    "shared_rows",
    "sum_gradients",
    "whole",
    "written_by_first",
]

T = TypeVar("T")

_WORDS = "another process of this run stopped: its message says why"


def own_turns(parts: Sequence[T]) -> Sequence[T]:
    """The parts that this process makes: every w-th, from its rank on."""
    return parts[processes.rank() :: processes.count()]


def in_order(
    own: Iterator[Shaped[Tensor, "_ *row"]], count: int, row: tuple[int, ...], dtype: torch.dtype = torch.float32
) -> Iterator[Shaped[Tensor, "_ *row"]]:
    """All `count` parts in order, on every process; `own` makes those of `own_turns`. On one process, `own` itself.

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
            yield from joined(part)[:here]
    except _Stopped:
        raise
    except (Exception, GeneratorExit):
        with contextlib.suppress(RuntimeError):  # the others may have ended too
            _sizes(-1)
        raise
    _sizes(0)  # a process that failed over the last parts says so here


def joined(part: Shaped[Tensor, "_ *row"]) -> list[Shaped[Tensor, "_ *row"]]:
    """One part of each process, by rank and on the device of this one; they may differ in their numbers of rows."""
    if processes.count() == 1:
        return [part]
    sizes = _sizes(len(part))
    padded = torch.zeros(max(sizes), *part.shape[1:], dtype=part.dtype, device=processes.device())
    padded[: len(part)] = part
    parts = processes.gather(padded).chunk(len(sizes)) if max(sizes) else [padded] * len(sizes)
    return [each[:size].to(part.device) for each, size in zip(parts, sizes, strict=True)]


def share_of(count: int, rank: int | None = None) -> slice:
    """The rows of this process, or of that of a rank, where `count` rows are shared as equally as they can be, in the
    order of the ranks; all, on every process, where there are fewer rows than processes."""
    if count < processes.count():
        return slice(0, count)
    rank = processes.rank() if rank is None else rank
    return slice(*(count * each // processes.count() for each in (rank, rank + 1)))


def whole(part: Shaped[Tensor, "_ *row"], count: int) -> Shaped[Tensor, "_ *row"]:
    """All `count` rows, of which every process has those that `share_of` gives it."""
    return part if len(part) == count else torch.cat(joined(part))


def everywhere(here: bool) -> bool:
    """Whether it is true on every process, so that all decide alike."""
    return from_each(int(here)).count(0) == 0


def alike(number: int) -> bool:
    """Whether all processes have the same number."""
    return len(set(from_each(number))) == 1


def from_first(number: int) -> int:
    """The number that the first process has."""
    return from_each(number)[0]


def from_each(number: int) -> list[int]:
    """The number that each process has, by rank."""
    return processes.gather(torch.tensor([number], device=processes.device())).tolist()


def by_first(make: Callable[[], T]) -> T | None:
    """What the first process makes, which the others wait for and do not have; if it fails, they get a `UserError`."""
    if processes.rank():
        if not everywhere(True):
            raise _Stopped(_WORDS)
        return None
    try:
        made = make()
    except BaseException:
        with contextlib.suppress(RuntimeError):  # the others may have ended too
            everywhere(False)
        raise
    everywhere(True)
    return made


def written_by_first(
    write: Callable[[Callable[[int], Iterator[Tensor]]], None], make: Callable[[int], Generator[Tensor, None, None]]
) -> None:
    """`write(make)` on the first process, while the others take part in `make`, which uses `in_order`.

    `make` gives the parts from a row on, which `write` chooses, and may fail to: the others then have nothing to do.
    """
    if processes.rank():
        if (start := from_first(0)) >= 0:
            for _ in make(start):
                pass
            if from_first(0) < 0:
                raise _Stopped(_WORDS)
        return
    begun: list[Generator[Tensor, None, None]] = []
    ended: list[bool] = []

    def parts(start: int) -> Generator[Tensor, None, None]:
        begun.append(make(from_first(start)))
        yield from begun[0]
        ended.append(True)

    done = False
    try:
        write(parts)
        done = True
    finally:
        for each in begun:  # a failure ends the others' work too
            each.close()
        if ended or not begun:
            from_first(0 if done and ended else -1)  # what was written is there


def shared_rows(
    make: Rows, count: int, file: Path, resident: int, progress: Callable[[int, int], None] = lambda done, total: None
) -> Rows:
    """As `vantage.storage.arrays.kept_rows`, and made by all processes together, the same bits; the first writes them.
    A process that does not have the first one's folder makes them alone."""

    def parts(start: int) -> Generator[Tensor, None, None]:
        each = torch.arange(start, count).split(AT_ONCE)
        own = (make(numbers) for numbers in own_turns(each))
        for numbers, rows in zip(each, in_order(own, len(each), tuple(row.shape[1:]), row.dtype), strict=True):
            yield rows
            progress(int(numbers[-1]) + 1, count)

    def write(parts: Callable[[int], Iterator[Tensor]]) -> None:
        made_rows(file, (count, *row.shape[1:]), row.dtype, {}, parts)

    if processes.count() > 1 and not everywhere(open_rows(file, count) is not None):
        row = make(torch.arange(min(count, 1)))
        written_by_first(write, parts)
    return kept_rows(make, count, file, resident, progress)


def sum_gradients(parameters: Iterable[Tensor]) -> None:
    """Make every gradient the sum of those of all processes, all of which have the same ones."""
    processes.add_up([parameter.grad for parameter in parameters if parameter.grad is not None])


class _Stopped(UserError):
    """What a process raises because another one stopped."""


def _sizes(rows: int) -> list[int]:
    sizes = from_each(rows)
    if -1 in sizes and rows >= 0:
        raise _Stopped(_WORDS)
    return sizes
