"""The same exact search by faiss, which an extra installs.

n: images   q: images looked up   b: images looked up at once   d: width of the features   k: neighbors
"""

import sys
from collections.abc import Iterator
from importlib.util import find_spec

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from vantage.measures.neighbors import best_of

__all__ = ["faiss_is_faster", "nearest_by_faiss"]

_QUERIES, _BANK = 4096, 50_000
"""Images looked up at once, and images of the bank that are normalized at once."""

_LEAST = 1000
"""Below this number of queries faiss does not use matrix products, and is slower (`benchmarks/neighbor_search.py`)."""


def faiss_is_faster(bank: Float[Tensor, "n d"], query: Float[Tensor, "q d"]) -> bool:
    """Whether faiss can do this search, and does it faster: features in float32 on the CPU, many queries, Linux.

    On macOS, faiss and torch each load an OpenMP of their own, which ends the process.
    """
    if len(query) < _LEAST or bank.device.type != "cpu" or bank.dtype != torch.float32 or sys.platform != "linux":
        return False
    return find_spec("faiss") is not None


def nearest_by_faiss(
    bank: Float[Tensor, "n d"], query: Float[Tensor, "q d"], k: int
) -> Iterator[tuple[Float[Tensor, "b k"], Int[Tensor, "b k"]]]:
    """As `vantage.measures.nearest`, up to rounding and the order of equal cosines."""
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads())
    for queries in query.split(_QUERIES):
        rows, best = normalize(queries, dim=1).numpy(), None
        for first in range(0, len(bank), _BANK):
            part = normalize(bank[first : first + _BANK], dim=1).numpy()
            cosine, number = faiss.knn(rows, part, min(k, len(part)), metric=faiss.METRIC_INNER_PRODUCT)
            best = best_of(best, torch.from_numpy(cosine), torch.from_numpy(number).add_(first), k)
        if best:
            yield best
