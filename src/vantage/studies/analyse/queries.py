"""Queries made as in a run, and the negatives that rules leave them, in tiles.

b: queries
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
from vantage.frozen.networks import TrainedNetworks
from vantage.negatives import Rule
from vantage.partition import negatives_of
from vantage.records import Keys, Scores
from vantage.studies.analyse.augmentation import augmented_vectors

__all__ = ["QueryTile", "with_clusters", "queries", "tiles"]

_PAIRS = 2**23  # pairs of queries and keys processed at once; each takes a few 64-bit numbers


class QueryTile(NamedTuple):
    """Some of the queries, and the negatives that the rules leave them."""

    query: Keys
    """The queries."""

    scores: Scores
    """Their negatives."""


def queries(model: TrainedNetworks, source: Source, image: Int[Tensor, "b"], view: int, seed: int, work: Work) -> Keys:
    """One draw of a run's view for each of these images, with the random numbers of the run's next step."""
    vector = torch.cat([part[:, 0] for part in augmented_vectors(model, source, image, view, 1, seed, work)])
    image = image.to(vector.device)
    seeds = draws.query_seeds(model.run.seed, model.step, image)
    return Keys(vector, image, seed=seeds, step_seed=draws.mix(model.run.seed, model.step))


def with_clusters(query: Keys, pool: Keys) -> Keys:
    """The queries with their clusters, if the pool has any; row i of the pool must be image i."""
    return query if pool.cluster is None else replace(query, cluster=pool.cluster[query.image])


def tiles(query: Keys, pool: Keys, rules: tuple[Rule, ...], step: int) -> Iterator[QueryTile]:
    """The queries in parts, so that memory stays bounded, and the negatives in the pool that the rules leave them."""
    query, rows = with_clusters(query, pool), max(1, _PAIRS // max(1, len(pool)))
    for start in range(0, len(query), rows):
        part = query.rows(slice(start, start + rows))
        yield QueryTile(part, negatives_of(part, pool, rules, step))
