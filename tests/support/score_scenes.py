"""Scores of random queries and keys, and the pairs that are kept of them."""

from dataclasses import replace

import synthetic
import torch

from vantage.records import Keys, Scores, score


def scene(queries: int, pool: int, images: int, seed: int) -> tuple[Scores, Keys, Keys]:
    """Queries, a pool with labels, and their scores, some of which were dropped before."""
    query, keys = synthetic.keys(queries, 3, seed, images), synthetic.keys(pool, 3, seed + 1, images)
    label = (torch.arange(pool) % 3)[:, None]
    keys = Keys(keys.vector, keys.image, label)
    query = replace(query, cluster=(torch.arange(queries) % 3)[:, None])
    scores = score(query, keys)
    if seed % 2:
        scores = scores.only(torch.rand(queries, pool, generator=torch.Generator().manual_seed(seed)) < 0.7)
    return scores, query, keys


def pairs(scores: Scores, row: int) -> list[int]:
    """Which keys a row kept."""
    return scores.key[row][scores.keep[row]].tolist()
