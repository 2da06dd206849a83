"""Work on the CPU row by row: NumPy's vectorized paths take one row at a time, and threads share the rows.

b: rows   n: columns
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

__all__ = ["counts", "over_rows"]

_WORTH_THREADS = 2**18  # values to look at, below which starting threads costs more than it saves


def over_rows(rows: int, columns: int, work: Callable[[int], None]) -> None:
    """`work` for each number of a row, in as many threads as torch has; NumPy releases Python's lock meanwhile."""

    def part(numbers: range) -> None:
        for row in numbers:
            work(row)

    threads = min(torch.get_num_threads(), rows) if rows * columns >= _WORTH_THREADS else 1
    if threads == 1:
        part(range(rows))
        return
    edges = [rows * n // threads for n in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(part, map(range, edges[:-1], edges[1:])))


def counts(keep: Bool[Tensor, "b n"]) -> Int[Tensor, "b"]:
    """How many of each row are kept, on the CPU; torch takes forty times as long to sum flags."""
    if keep.device.type != "cpu":
        return keep.sum(1).cpu()
    if keep.stride() == (0, 0):
        return torch.full((len(keep),), keep.shape[1] if keep.numel() and bool(keep[0, 0]) else 0)
    return torch.tensor([int(np.count_nonzero(row)) for row in keep.numpy()], dtype=torch.int64)
