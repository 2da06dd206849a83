"""Positives out of clusters, one by one; their contract is in `positives/test_positives.py`."""

from dataclasses import replace

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import Tensor

from vantage.errors import UserError
from vantage.positives import ClusterMate, ClusterMates, NearMates, OtherMate, Positives, nearest
from vantage.records import Keys, Scores


def bank(label: list[int] | Tensor, width: int = 3, seed: int = 0) -> Keys:
    cluster = torch.as_tensor(label)
    return replace(synthetic.keys(len(cluster), width, seed), cluster=cluster.reshape(len(cluster), -1))


def query_of(pool: Keys, image: list[int], step: int = 0) -> Keys:
    """Queries of these images, with the labels that the bank has of them."""
    number = torch.tensor(image)
    seed = synthetic.query_seeds(1, step, torch.arange(len(image)))
    return Keys(synthetic.vectors(len(image), pool.vector.shape[1], 77), number, pool.clusters[number], seed)


def keys_of(scores: Scores, row: int) -> list[int]:
    return scores.key[row][scores.keep[row]].tolist()


def keys_in_cluster(pool: Keys, image: int) -> list[int]:
    """Rows that any clustering joins with an image, by looking at every row."""
    label = pool.clusters.tolist()
    return [j for j in range(len(pool)) if any(a == b for a, b in zip(label[j], label[image], strict=True))]


@pytest.mark.parametrize("part", [ClusterMate(), OtherMate()])
def test_a_mate_is_uniform_over_the_cluster(part: ClusterMate | OtherMate):
    pool = bank([4, 0, 4, 7, 4, 4, 0])
    scores = part(query_of(pool, [2] * 4000), (), pool, 0)
    times = scores.key.flatten().bincount(minlength=7)
    members = [0, 2, 4, 5] if part == ClusterMate() else [0, 4, 5]
    assert scores.keep.all() and times.sum() == times[members].sum()
    assert chisquare(times[members].numpy()).pvalue > 1e-3


@pytest.mark.parametrize("part", [ClusterMate(), OtherMate()])
def test_an_image_alone_in_its_cluster_has_its_own_row(part: ClusterMate | OtherMate):
    pool = bank([3, 1, 2, 0])
    assert part(query_of(pool, [2, 0, 1]), (), pool, 0).key.tolist() == [[2], [0], [1]]


def test_a_mate_is_drawn_by_the_seed_alone():
    pool = bank([0] * 50)
    query = query_of(pool, [3, 8, 9, 20])
    mates_of = ClusterMate()(query, (), pool, 0)
    assert torch.equal(mates_of.key, ClusterMate()(query, (), pool, 0).key)
    assert not torch.equal(mates_of.key, ClusterMate()(query_of(pool, [3, 8, 9, 20], step=1), (), pool, 0).key)


def test_with_several_clusterings_each_is_as_likely():
    pool = bank(torch.tensor([[0, 5], [0, 6], [1, 5], [2, 5], [2, 5]]))
    times = OtherMate()(query_of(pool, [0] * 6000), (), pool, 0).key.flatten().bincount(minlength=5)
    assert times[0] == 0
    assert chisquare(times[1:].numpy(), [3000, 1000, 1000, 1000]).pvalue > 1e-3


@given(rows=st.integers(1, 30), clusters=st.integers(1, 6), clusterings=st.integers(1, 3), seed=st.integers(0, 50))
def test_all_mates_are_the_union_of_the_clusters(rows: int, clusters: int, clusterings: int, seed: int):
    pool = bank(torch.randint(clusters, (rows, clusterings), generator=torch.Generator().manual_seed(seed)))
    images = [seed % rows, 0, rows - 1]
    scores = ClusterMates()(query_of(pool, images), (), pool, 0)
    assert [keys_of(scores, row) for row in range(3)] == [keys_in_cluster(pool, image) for image in images]


def test_of_a_large_cluster_some_are_drawn():
    pool = bank([0] * 40 + [1] * 3)
    scores = ClusterMates(most=4)(query_of(pool, [0, 41]), (), pool, 0)
    assert scores.key.shape[1] == 4 and keys_of(scores, 1) == [40, 41, 42]
    few = keys_of(scores, 0)
    assert 1 <= len(few) <= 4 and len(set(few)) == len(few) and max(few) < 40


@given(rows=st.integers(1, 30), count=st.integers(1, 40), clusterings=st.integers(1, 3), seed=st.integers(0, 50))
def test_near_mates_are_mates_among_the_nearest(rows: int, count: int, clusterings: int, seed: int):
    pool = bank(torch.randint(4, (rows, clusterings), generator=torch.Generator().manual_seed(seed)), seed=seed)
    query = query_of(pool, [seed % rows, 0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest, "BUDGET", 1 if seed % 2 else 2**28)
        scores = NearMates(count)(query, (), pool, 0)
    for row, image in enumerate(query.image.tolist()):
        order = sorted(range(rows), key=lambda j: -float(query.vector[row] @ pool.vector[j]))  # noqa: B023
        assert keys_of(scores, row) == [j for j in order[:count] if j in keys_in_cluster(pool, image)]


@pytest.mark.parametrize("part", [ClusterMate(), ClusterMates(), NearMates()])
def test_a_memory_without_clusters_is_refused(part: Positives):
    query, pool = synthetic.keys(2, 3, 0), synthetic.keys(5, 3, 1)
    with pytest.raises(UserError, match="memory that keeps them"):
        part(query, (), pool, 0)


def test_counts_of_nothing_are_refused_and_near_fits_the_images():
    for part in (ClusterMates, NearMates):
        with pytest.raises(UserError, match="no positive"):
            part(0)
    assert NearMates().fit_to(1000, 8).count == 250 and NearMates().fit_to(10**6, 8).count == 4096
