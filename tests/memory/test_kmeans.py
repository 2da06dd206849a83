"""k-means over a bank."""

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from pretend_gpu import Pretend, Pretended, values
from references import clusters as reference
from sklearn.cluster import KMeans
from torch.testing import assert_close

from vantage.errors import UserError
from vantage.memory import kmeans as module
from vantage.memory.kmeans import Distance, InnerProduct, halves, kmeans, lloyd, nearest, sums


@given(
    rows=st.integers(0, 40), clusters=st.integers(1, 6), room=st.sampled_from([1, 200, 2**26]), seed=st.integers(0, 9)
)
def test_sums_are_those_of_the_loop_in_any_parts(rows: int, clusters: int, room: int, seed: int):
    vector = synthetic.vectors(rows, 3, seed)
    label = torch.randint(clusters, (rows,), generator=torch.Generator().manual_seed(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BYTES", room)
        total, times = sums(label, vector, clusters)
    assert len(total) == clusters
    for number, (vector_sum, count) in enumerate(zip(total, times.tolist(), strict=True)):
        assert count == int((label == number).sum())
        assert_close(vector_sum, vector[label == number].sum(0), rtol=0, atol=1e-14)


@given(seed=st.integers(0, 50), room=st.sampled_from([1, 2**26]))
def test_nearest_is_the_loop(seed: int, room: int):
    vector, centroid = synthetic.vectors(15, 3, seed), 0.5 * synthetic.vectors(4, 3, seed + 1) + 0.1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BYTES", room)
        by_distance, by_product = nearest(vector, centroid)[0], nearest(vector, centroid, InnerProduct())[0]
    points = centroid.tolist()
    assert by_distance.tolist() == [reference.nearest(row, points) for row in vector.tolist()]
    assert by_product.tolist() == [reference.nearest(row, points, reference.inner) for row in vector.tolist()]


@given(seed=st.integers(0, 50), tie=st.booleans())
def test_23_dot_and_distance_agree_where_centroid_norms_tie(seed: int, tie: bool):
    """‖v − c‖² = 1 + ‖c‖² − 2 v·c: equal norms make them agree; else the shift is half the square."""
    vector, centroid = synthetic.vectors(30, 3, seed), synthetic.vectors(5, 3, seed + 1)
    centroid = centroid * (0.7 if tie else torch.tensor([[0.05], [1.0], [0.2], [0.6], [0.4]], dtype=torch.float64))
    close, product = Distance()(vector, centroid), InnerProduct()(vector, centroid)
    apart = (vector[:, None] - centroid).square().sum(2)
    assert_close(1 - 2 * close, apart, rtol=0, atol=1e-12)
    assert_close(1 + centroid.square().sum(1) - 2 * product, apart, rtol=0, atol=1e-12)
    same = torch.equal(nearest(vector, centroid)[0], nearest(vector, centroid, InnerProduct())[0])
    assert same == tie


@pytest.mark.parametrize("iterations", [1, 3])
def test_iterations_are_lloyds(iterations: int):
    vector = synthetic.vectors(40, 3, 1)
    start = torch.randperm(40, generator=torch.Generator().manual_seed(5))[:4]
    label, _ = kmeans(vector, 4, 5, iterations)
    assert label.tolist() == reference.lloyd(vector.tolist(), vector[start].tolist(), iterations)


def test_it_ends_where_scikit_learn_ends():
    vector = synthetic.vectors(300, 4, 2)
    start = torch.randperm(300, generator=torch.Generator().manual_seed(7))[:6]
    label, centroid = kmeans(vector, 6, 7, 300)
    theirs = KMeans(6, init=vector[start].numpy(), n_init=1, max_iter=300, tol=0.0).fit(vector.numpy())
    assert_close(centroid, torch.from_numpy(theirs.cluster_centers_), rtol=0, atol=1e-10)
    assert label.tolist() == theirs.labels_.tolist()


def test_the_seed_decides_and_equal_rows_do_not_hang():
    vector = synthetic.vectors(50, 3, 0)
    assert torch.equal(kmeans(vector, 5, 1)[0], kmeans(vector, 5, 1)[0])
    assert not torch.equal(kmeans(vector, 5, 1)[0], kmeans(vector, 5, 2)[0])
    label, centroid = kmeans(torch.ones(9, 3) / 3**0.5, 4, 0)
    assert label.unique().numel() == 1 and torch.isfinite(centroid).all()
    assert kmeans(vector, 50, 3)[0].unique().numel() == 50


@pytest.mark.parametrize("equal", [1, 6, 20])
def test_a_device_gives_what_the_cpu_gives_and_is_not_waited_for(equal: int):
    """Clusters that are left empty included: copies of one row are one cluster, whichever of them starts one."""
    vector = synthetic.vectors(40, 3, 4)
    vector[:equal] = vector[0]
    expected = kmeans(vector, 8, 1)
    with Pretend() as mode:
        actual = kmeans(Pretended(vector), 8, 1)
    assert mode.waits == []
    for one, other in zip(actual, expected, strict=True):
        assert_close(values(one), other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("device", ["cpu", "pretended"])
@given(rows=st.integers(2, 40), more=st.integers(0, 9), seed=st.integers(0, 99), iterations=st.sampled_from([0, 1, 20]))
def test_halves_are_lloyds_of_two_clusters(rows: int, more: int, seed: int, iterations: int, device: str):
    """Of the valid rows, whatever the others hold; a second start that equals the first moves to the farthest row."""
    vector = synthetic.vectors(rows + more, 3, seed)
    start = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))[:2]
    valid = torch.arange(rows + more) < rows
    if seed % 3 == 0:
        vector[start[1]] = vector[start[0]]
    far = int(torch.where(valid, vector @ vector[start[0]], torch.inf).argmin())
    begun = torch.tensor([int(start[0]), far]) if seed % 3 == 0 else start
    expected = lloyd(vector[:rows], begun, iterations)[0] == 1
    if device == "cpu":
        second = halves(vector, start, iterations, valid)
    else:
        with Pretend() as mode:
            second = values(halves(Pretended(vector), Pretended(start), iterations, Pretended(valid)))
        assert mode.waits == []
    assert second[:rows].tolist() == expected.tolist()
    assert not second[rows:].any()


def test_halves_of_equal_rows_are_one_cluster_and_a_lone_row_keeps_its_place():
    """A cluster of one among thousands has the center of its row, in the precision of the rows."""
    valid = torch.ones(5_000, dtype=torch.bool)
    equal = torch.ones(5_000, 3) / 3**0.5
    assert not halves(equal, torch.tensor([0, 1]), 20, valid).any()
    apart = torch.cat([equal[1:], -equal[:1]])
    assert halves(apart, torch.tensor([0, 1]), 20, valid).nonzero().flatten().tolist() == [4_999]
    assert not halves(apart, torch.tensor([0, 1]), 20, valid.index_fill(0, torch.tensor(4_999), False)).any()


@pytest.mark.parametrize("clusters", [0, 6])
def test_more_clusters_than_images_are_refused(clusters: int):
    with pytest.raises(UserError, match="fewer clusters"):
        kmeans(torch.eye(5), clusters, 0)
