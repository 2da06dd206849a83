"""Cores that other programs use, and the number of threads for the remaining cores.

Two threads on two cores, one of which another program uses, wait for each other at every parallel loop, and train more
slowly than one thread does (`benchmarks/threads.py`).
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["taken_cores", "threads_for_free_cores", "using_threads"]

_SECONDS = 0.5
_TAKEN = 0.6  # a core counts as taken if other programs use it for this share of the time
_IDLE, _NICE = (3, 4), 1  # columns of /proc/stat: idle and waiting for disks; programs of low priority


def _ticks() -> dict[int, list[int]]:
    """For each core, the time spent in each state since the machine started; empty if the system does not tell."""
    try:
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
        return {int(line[0][3:]): [int(ticks) for ticks in line[1:9]] for line in lines if line[0][3:].isdigit()}
    except (OSError, ValueError, IndexError):
        return {}


def taken_cores(seconds: float = _SECONDS, ticks: Callable[[], dict[int, list[int]]] = _ticks) -> int:
    """How many of this process's cores other programs use while it sleeps for some seconds; 0 if this is unknown.

    Programs of low priority (`nice`) do not count, unless this one is of low priority too.
    """
    if not hasattr(os, "sched_getaffinity"):
        return 0
    before = ticks()
    time.sleep(seconds)
    after = ticks()
    free = _IDLE if os.nice(0) > 0 else (*_IDLE, _NICE)
    busy = 0
    for core in os.sched_getaffinity(0) & before.keys() & after.keys():
        spent = [late - early for early, late in zip(before[core], after[core], strict=True)]
        busy += sum(spent) - sum(spent[column] for column in free) > _TAKEN * max(1, sum(spent))
    return busy


def threads_for_free_cores() -> int:
    """One thread for each core that no other program uses, at least one; 0, which means torch's own number, if no core
    is taken, this process has a single one, or the user has set `OMP_NUM_THREADS`."""
    if "OMP_NUM_THREADS" in os.environ or not hasattr(os, "sched_getaffinity"):
        return 0
    cores = len(os.sched_getaffinity(0))
    busy = taken_cores() if cores > 1 else 0
    return max(1, cores - busy) if busy else 0


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Within the block, torch computes with this many threads on a CPU; 0 changes nothing."""
    import torch  # not needed to look at the load

    before = torch.get_num_threads()
    try:
        if count:
            torch.set_num_threads(count)
        yield
    finally:
        if count:
            torch.set_num_threads(before)
