"""Random queries, keys and tables for tests, made by NumPy, so that they are the same with every version of torch."""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from vantage.draws import query_seeds
from vantage.records import Keys, Negatives, Scores


def vectors(rows: int, width: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random unit vectors."""
    numbers = np.random.default_rng(seed).standard_normal((rows, width))
    return normalize(torch.from_numpy(numbers), dim=1).to(dtype)


def keys(rows: int, width: int, seed: int, images: int | None = None, dtype: torch.dtype = torch.float64) -> Keys:
    """Random keys with seeds; if `images` is less than `rows`, images repeat."""
    image = torch.arange(rows) % (images or rows)
    return Keys(vectors(rows, width, seed, dtype), image, seed=query_seeds(seed, 0, torch.arange(rows)), step_seed=seed)


def table(cosine: Tensor, keep: Tensor | None = None) -> Scores:
    """Scores of given cosines, columns numbered in order."""
    column = torch.arange(cosine.shape[1], device=cosine.device).expand(cosine.shape)
    return Scores(cosine, column, torch.ones_like(cosine, dtype=torch.bool) if keep is None else keep)


def negatives(log_sum: Tensor, count: int = 1) -> Negatives:
    """Negatives of a given sum, `count` of them for each query."""
    return Negatives(log_sum, torch.full((len(log_sum),), count, device=log_sum.device))
