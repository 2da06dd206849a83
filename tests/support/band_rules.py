"""Rules that keep a band of ranks, and queries and keys for them."""

import synthetic
import torch
from torch import Tensor

from vantage.negatives import AbsoluteRing, Ball, BandRule, Count, Easiest, Hardest, Ring, Share
from vantage.records import Keys
from vantage.schedules import Constant

BANDS: tuple[BandRule, ...] = (
    Ring(),
    Ring(Constant(0.5), Constant(0.5)),
    AbsoluteRing(Constant(0.8), Constant(0.3)),
    Ball(Constant(0.3)),
    Ball(Constant(1.0)),
    Hardest(Count(4)),
    Easiest(Share(Constant(0.4))),
)


def pair(queries: int, pool: int, images: int, seed: int) -> tuple[Keys, Keys]:
    query, keys = synthetic.keys(queries, 4, seed, images), synthetic.keys(pool, 4, seed + 1, images)
    query.vector.requires_grad_()
    return query, keys


def gradient(result: Tensor, query: Keys) -> Tensor:
    weight = torch.linspace(0.5, 2.0, len(result), dtype=result.dtype)
    finite = torch.where(torch.isfinite(result), result, 0.0)
    return torch.autograd.grad((finite * weight).sum(), query.vector, retain_graph=True)[0]
