"""Scores of a critic that knows nothing."""

import torch
from torch import Tensor

from vantage import draws
from vantage.records import Keys


def random_critic(pairs: int, pool: int, seed: int = 0, width: int = 4) -> tuple[Tensor, Keys, Keys]:
    """Positives, queries and pool in float64."""
    generator = torch.Generator().manual_seed(seed)
    image = torch.arange(pairs)
    query = Keys(
        torch.randn(pairs, width, generator=generator, dtype=torch.float64),
        image,
        seed=draws.query_seeds(seed, 0, image),
    )
    keys = Keys(torch.randn(pool, width, generator=generator, dtype=torch.float64), torch.arange(pool))
    return torch.randn(pairs, generator=generator, dtype=torch.float64), query, keys
