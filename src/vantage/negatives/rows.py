"""Row-by-row work on the CPU: NumPy's vectorized paths take one row at a time, and threads share the rows."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

__all__ = ["over_rows"]

_WORTH_THREADS = 2**18  # with fewer values, starting threads costs more than it saves


def over_rows(rows: int, columns: int, work: Callable[[int], None]) -> None:
    """Call `work` with the number of each row, in as many threads as torch has; NumPy releases the GIL meanwhile."""

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
