"""Rules that judge each pair by the numbers and clusters of its two images.

b: queries   n: keys scored
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from vantage.negatives.rule import PairRule
from vantage.records import Keys, Scores

__all__ = ["OtherClusters", "OtherImages", "OwnCluster"]


_FEW = 64  # if the index lists at most a 64th of the pairs, marking them is cheaper than comparing all labels


@dataclass(frozen=True)
class OtherImages(PairRule):
    """Drop keys of the query's own image.

    In a batch this masks the query itself and its positives (SimCLR: 2N − 2 negatives stay); in a bank, the query's own
    row; in a queue, keys of the same image from an earlier epoch. These are false negatives, and common if the queue is
    not much shorter than the data set.
    """

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs of two different images."""
        return scores.only(scores.of(pool.image) != query.image[:, None])


@dataclass(frozen=True)
class OtherClusters(PairRule):
    """Drop keys of the query's own cluster, including the query's own row (InterCLR); with several clusterings, keys
    that share a cluster with the query in any of them.

    A query whose cluster is the whole pool keeps no negative, and its loss carries no information.
    """

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs of different clusters. Raises `UserError` if the memory keeps no clusters."""
        return scores.only(_different_clusters(scores, query, pool))


@dataclass(frozen=True)
class OwnCluster(PairRule):
    """Keep only keys of the query's own cluster (Cave, arXiv 2010.02037); with several clusterings, keys that share a
    cluster with the query in any of them. The query's own row stays; add `OtherImages` to drop it."""

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs within one cluster. Raises `UserError` if the memory keeps no clusters."""
        return scores.only(~_different_clusters(scores, query, pool))


def _different_clusters(scores: Scores, query: Keys, pool: Keys) -> Bool[Tensor, "b n"]:
    """Whether every clustering gives the two images different labels; one clustering at a time, to save memory."""
    if pool.members is not None and scores.key.stride(0) == 0 and scores.key.shape[1] == len(pool):
        same = pool.members.same_cluster(pool.clusters, query.clusters, scores.keep.numel() // _FEW)
        if same is not None:
            different = torch.ones_like(scores.keep, memory_format=torch.contiguous_format)
            different[same] = False
            return different
    (query_label, pool_label), *rest = zip(query.clusters.T, pool.clusters.T, strict=True)
    different = scores.of(pool_label) != query_label[:, None]
    for query_label, pool_label in rest:
        different &= scores.of(pool_label) != query_label[:, None]
    return different
