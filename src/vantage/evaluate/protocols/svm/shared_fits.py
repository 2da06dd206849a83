"""Linear support vector machines that all processes of a run fit together."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float64

from vantage import processes
from vantage.evaluate.protocols.svm.solver import in_parallel, processes_for
from vantage.machine.launchers import local_processes
from vantage.processes.sharing import own_parts, parts_in_order, same_on_all
from vantage.storage.results import CachedResults

__all__ = ["missing_on_all", "shared_fits"]

K = TypeVar("K")


def missing_on_all(results: CachedResults, keys: Sequence[str]) -> list[str]:
    """The keys without a result; the list is the same on every process. Results are made in the order of the keys, so
    processes with equally many results have the same ones. If the numbers differ, every key counts as missing."""
    missing = [key for key in keys if key not in results]
    return missing if same_on_all(len(missing)) else list(keys)


def shared_fits(
    task_of: Callable[[K], tuple[Any, ...]],
    keys: Sequence[K],
    to_numbers: Callable[[Any], Float64[np.ndarray, "*row"]],
    row: tuple[int, ...],
    *,
    size: int,
    fits: int,
) -> Iterator[Float64[np.ndarray, "*row"]]:
    """The result of each key's task, in the order of the keys, on every process; bit for bit as with one process.

    `task_of` makes a task of `in_parallel`, and `to_numbers` turns its result into an array of the shape `row`. `size`
    is how many numbers a matrix of features has, and `fits` how many SVMs a task fits. Every process must call it with
    the same keys and read it to the end.
    """
    own = own_parts(keys)
    cores = max(1, processes_for(size, len(own) * fits) // local_processes(processes.count()))
    results = in_parallel((task_of(key) for key in own), cores)
    parts = (torch.from_numpy(to_numbers(result))[None] for result in results)
    for part in parts_in_order(parts, len(keys), row, torch.float64):
        yield part[0].numpy()
