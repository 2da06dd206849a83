"""Queries as a run makes them, and the negatives that its rules leave, in tiles.

b: queries   m: keys in the pool   n: keys scored
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from vantage import draws
from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.negatives import Rule
from vantage.partition import negatives_of
from vantage.records import Keys, Scores
from vantage.studies.analyse.augmentation import augmented_vectors
from vantage.studies.analyse.networks import TrainedNetworks

__all__ = ["Tile", "with_clusters", "queries", "tiles"]

_PAIRS = 2**23  # of queries and keys that are looked at together: some 64-bit numbers each


class Tile(NamedTuple):
    """Some of the queries, and the negatives that the rules leave them."""

    query: Keys
    """The queries."""

    scores: Scores
    """Their negatives."""


def queries(one: TrainedNetworks, source: Source, image: Int[Tensor, "b"], view: int, seed: int, work: Work) -> Keys:
    """One draw of a run's view for each of these images, with the random numbers of the run's next step."""
    vector = torch.cat([part[:, 0] for part in augmented_vectors(one, source, image, view, 1, seed, work)])
    image = image.to(vector.device)
    own = draws.query_seeds(one.run.seed, one.step, image)
    return Keys(vector, image, seed=own, step_seed=draws.mix(one.run.seed, one.step))


def with_clusters(query: Keys, pool: Keys) -> Keys:
    """The queries with their clusters, if the pool keeps any; row i of the pool must be image i."""
    return query if pool.cluster is None else replace(query, cluster=pool.cluster[query.image])


def tiles(query: Keys, pool: Keys, rules: tuple[Rule, ...], step: int) -> Iterator[Tile]:
    """The queries, some at a time so that memory stays bounded, and the negatives that the rules leave them in the
    pool."""
    query, rows = with_clusters(query, pool), max(1, _PAIRS // max(1, len(pool)))
    for start in range(0, len(query), rows):
        some = query.rows(slice(start, start + rows))
        yield Tile(some, negatives_of(some, pool, rules, step))
