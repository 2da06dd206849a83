"""Banks with clusters: when they are made, how they follow, and that none grows too small."""

from collections.abc import Callable

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from pretend_gpu import Pretend, Pretended, pretended, values
from references import clusters as reference
from torch import Tensor
from torch.nn.functional import normalize
from torch.testing import assert_close

from vantage import draws
from vantage.errors import UserError
from vantage.memory import (
    Bank,
    ClusteredBank,
    Distance,
    InBatch,
    InnerProduct,
    OnlineStore,
    Queue,
    ReclusteredBank,
)
from vantage.memory import clustered as module
from vantage.memory.clustering import Clustering
from vantage.memory.kmeans import kmeans, nearest
from vantage.records import Keys


def fresh(image: list[int], seed: int, width: int = 3) -> Keys:
    return Keys(synthetic.vectors(len(image), width, seed), torch.tensor(image))


def filled_store(choice: ClusteredBank, images: int, seed: int = 0) -> OnlineStore:
    """A store that was written once for every image, so that its clusters were just made."""
    store = choice.build(images, 3).double()
    store.write(fresh(list(range(images)), seed))
    return store


def assert_consistent(store: OnlineStore) -> None:
    """Sums and counts are those of the labels."""
    one_hot = torch.nn.functional.one_hot(store.label[:, 0], len(store.count))
    assert torch.equal(one_hot.sum(0), store.count)
    assert_close(store.total, one_hot.T.double() @ store.vector, rtol=0, atol=1e-12)


def test_every_image_is_its_own_cluster_until_all_are_written():
    store = ClusteredBank(0.5, clusters=3, smallest=0).build(8, 3)
    for part in ([0, 1, 2, 3], [0, 4, 5]):
        store.write(fresh(part, 0))
        assert store.label[:, 0].tolist() == list(range(8))
    store.write(fresh([6], 1))
    expected, centroid = kmeans(store.vector, 3, draws.mix(int(store.seed), 1))
    assert torch.equal(store.label[:, 0], expected) and torch.equal(store.centroid, centroid)
    pool = store.read(fresh([0], 0))
    assert torch.equal(pool.clusters, store.label) and store.label.max() == 2


def test_images_that_are_there_twice_count_once_on_a_device_too():
    """The device is not asked how many images differ, only whether a cluster has become too small."""
    stores = [filled_store(ClusteredBank(0.5, clusters=3, smallest=2), 12) for _ in range(2)]
    stores[1].load_state_dict(stores[0].state_dict())
    pretended(stores[1])
    for part in ([3, 3, 1, 7], [0, 11, 0, 0], [5, 2, 9, 4]):
        keys = fresh(part, sum(part))
        stores[0].write(keys)
        with Pretend() as mode:
            stores[1].write(Keys(Pretended(keys.vector), Pretended(keys.image)))
    assert_consistent(stores[0])
    assert [wait.place.split(":")[0] for wait in mode.waits] == ["memory/clustering.py"]
    for one, other in zip(stores[0].buffers(), stores[1].buffers(), strict=True):
        assert_close(values(other), one, rtol=0, atol=1e-12)


def test_first_clusters_can_be_those_of_initial_rows():
    """The release of InterCLR: rows, labels and centroids of the untrained network's features, before any step."""
    store = ClusteredBank(0.5, clusters=3, refresh_every=1, smallest=0, first=0).build(12, 3).double()
    assert store.waits
    with pytest.raises(UserError, match="call Store.begin with a unit vector of every image"):
        store.write(fresh([0, 1], 0))
    rows = normalize(torch.randn(12, 3, dtype=torch.float64), dim=1)
    store.begin(Keys(rows, torch.arange(12)))
    expected, centroid = kmeans(rows, 3, draws.mix(int(store.seed), 1))
    assert not store.waits and torch.equal(store.vector, rows)
    assert torch.equal(store.label[:, 0], expected) and torch.equal(store.centroid, centroid)
    assert_consistent(store)
    store.write(fresh([4, 7], 1))  # labels follow from the first write on
    assert torch.equal(store.label[[4, 7], 0], nearest(store.vector[[4, 7]], centroid, Distance())[0])
    assert_consistent(store)
    again = ClusteredBank(0.5, clusters=3, refresh_every=1, smallest=0, first=0).build(12, 3).double()
    again.load_state_dict(store.state_dict())
    assert not again.waits, "a resumed run is not begun twice"
    with pytest.raises(UserError, match="InBatchStore has no room"):
        InBatch().build(12, 3).begin(Keys(rows.float(), torch.arange(12)))


def test_a_warm_start_clusters_at_once_whatever_was_to_come_first():
    """Rows that exist already need no passes to wait for; labels are followed or made again from then on."""
    keys = Keys(normalize(torch.randn(12, 3, dtype=torch.float64), dim=1), torch.arange(12))
    online = ClusteredBank(0.5, clusters=3, refresh_every=1, smallest=0, first=2).build(12, 3).double()
    online.begin(keys)
    label, centroid = kmeans(keys.vector, 3, draws.mix(int(online.seed), 1))
    assert torch.equal(online.label[:, 0], label) and torch.equal(online.centroid, centroid)
    online.write(fresh([4, 7], 1))
    assert torch.equal(online.label[[4, 7], 0], nearest(online.vector[[4, 7]], centroid, Distance())[0])
    assert_consistent(online)
    offline = ReclusteredBank(0.5, clusters=3, clusterings=1, every=1, first=3).build(12, 3).double()
    offline.begin(keys)
    first = kmeans(keys.vector, 3, draws.mix(int(offline.seed), 1))[0]
    assert torch.equal(offline.label[:, 0], first)
    offline.write(fresh(list(range(11)), 1))
    assert torch.equal(offline.label[:, 0], first), "an epoch has not passed"
    offline.write(fresh([11], 2))
    again = kmeans(offline.vector, 3, draws.mix(draws.mix(int(offline.seed), 2), 0))[0]
    assert torch.equal(offline.label[:, 0], again)
    bank = Bank().build(12, 3).double()
    bank.begin(keys)
    assert torch.equal(bank.vector, keys.vector)
    queue = Queue(8).build(12, 3).double()
    queue.begin(keys.rows(slice(0, 8)))
    assert torch.equal(queue.vector, keys.vector[:8]) and torch.equal(queue.image, torch.arange(8))


def test_offline_labels_start_where_online_ones_do():
    """So that Figure 6a of InterCLR compares how labels are kept, not how they begin."""
    keys = Keys(normalize(torch.randn(12, 3, dtype=torch.float64), dim=1), torch.arange(12))
    stores = []
    for choice in (ClusteredBank(0.5, clusters=3, first=0), ReclusteredBank(0.5, clusters=3, clusterings=2, first=0)):
        torch.manual_seed(5)
        store = choice.build(12, 3).double()
        assert store.waits and int(store.seed) == int((stores or [store])[0].seed)
        with pytest.raises(UserError, match="call Store.begin with a unit vector of every image"):
            store.write(fresh([0, 1], 0))
        store.begin(keys)
        stores.append(store)
    online, offline = stores
    assert not offline.waits and torch.equal(online.vector, offline.vector)
    assert torch.equal(online.label[:, 0], offline.label[:, 0]) and online.label.unique().numel() == 3
    assert not torch.equal(offline.label[:, 0], offline.label[:, 1]), "each clustering starts from other rows"
    before = offline.label.clone()
    offline.write(fresh(list(range(11)), 1))
    assert torch.equal(offline.label, before), "an epoch has not passed"
    again = ReclusteredBank(0.5, clusters=3, clusterings=2, first=0).build(12, 3).double()
    again.load_state_dict(offline.state_dict())
    assert not again.waits, "a resumed run is not begun twice"
    for one in (again, offline):
        one.write(fresh([11], 2))
    assert torch.equal(offline.label, again.label) and not torch.equal(offline.label, before)
    assert ReclusteredBank(first=0).stretch(2.0, 1.0).first == 0


@given(
    batches=st.lists(st.lists(st.integers(0, 11), min_size=1, max_size=6, unique=True), min_size=1, max_size=6),
    refresh=st.integers(1, 3),
    momentum=st.sampled_from([0.0, 0.5]),
    product=st.booleans(),
    seed=st.integers(0, 30),
)
def test_labels_and_centroids_follow_as_the_loop_has_it(batches, refresh: int, momentum: float, product, seed: int):
    closeness, apart = (InnerProduct(), reference.inner) if product else (Distance(), reference.distance)
    store = filled_store(ClusteredBank(momentum, 3, refresh, smallest=0, closeness=closeness), 12, seed)
    start = store.vector.tolist(), store.label[:, 0].tolist(), store.centroid.tolist()
    labels = []
    for number, image in enumerate(batches):
        keys = fresh(image, 100 * seed + number)
        store.write(keys)
        labels.append((image, keys.vector.tolist()))
        assert_consistent(store)
    rows, label, centroids = reference.online(*start, labels, momentum, refresh, apart)
    assert_close(store.vector, torch.tensor(rows, dtype=torch.float64), rtol=0, atol=1e-10)
    assert store.label[:, 0].tolist() == label
    assert_close(store.centroid, torch.tensor(centroids, dtype=torch.float64), rtol=0, atol=1e-10)


@given(seed=st.integers(0, 200), clusters=st.integers(2, 8), smallest=st.integers(1, 6), images=st.integers(12, 40))
def test_24_small_clusters_are_dissolved(seed: int, clusters: int, smallest: int, images: int):
    """None is empty; none is below the minimum, unless split off in this very call from one that was too short."""
    vector = synthetic.vectors(images, 3, seed)
    label = torch.randint(clusters, (images,), generator=torch.Generator().manual_seed(seed)) ** 2 % clusters
    centroid = 0.5 * synthetic.vectors(clusters, 3, seed + 1)
    total, count = torch.zeros_like(centroid), torch.zeros(clusters, dtype=torch.int64)
    now = Clustering(vector, label, centroid, total, count)
    now.recount()
    before = label.clone()
    small = now.count < smallest
    now.mend(smallest, Distance(), seed)
    if small.all() or not small.any():
        assert torch.equal(label, before)
        return
    one_hot = torch.nn.functional.one_hot(label, clusters)
    assert torch.equal(one_hot.sum(0), count)
    assert_close(total, one_hot.T.double() @ vector, rtol=0, atol=1e-12)
    assert (count > 0).all() or images < clusters
    for _ in range(60):
        now.mend(smallest, Distance(), seed)
    assert (count.sum(), int(count.min()) > 0) == (images, True)
    if images >= 1.5 * clusters * smallest:  # with fewer, halves of the largest may be small for good
        assert int(count.min()) >= smallest


def test_24_calls_that_follow_reach_the_minimum():
    """With far more images than the minimum needs, repeated mending ends with no small cluster and then rests."""
    store = filled_store(ClusteredBank(0.0, clusters=6, refresh_every=1, smallest=5), 120)
    store.label[:, 0] = torch.where(torch.arange(120) < 3, 1, 0)
    store.clustering.recount()
    for step in range(20):
        store.clustering.mend(5, Distance(), step)
    assert int(store.count.min()) >= 5
    before = store.label.clone()
    store.clustering.mend(5, Distance(), 99)
    assert torch.equal(before, store.label)


@pytest.mark.parametrize("equal", [False, True])
def test_a_device_is_asked_twice_however_many_clusters_are_split(equal: bool):
    """And gives what the CPU gives: three clusters are too small here, and each is given half of the largest."""
    vector = synthetic.vectors(40, 3, 1)
    vector = vector[:1].repeat(40, 1) if equal else vector
    label = torch.tensor([0] * 26 + [1] * 10 + [2] * 2 + [3] * 2)

    def clusters_on(on: Callable[[Tensor], Tensor]) -> list[Tensor]:
        centroid, total, count = 0.5 * synthetic.vectors(5, 3, 2), torch.zeros(5, 3).double(), torch.zeros(5).long()
        clustering = Clustering(*map(on, (vector, label.clone(), centroid, total, count)))
        clustering.recount()
        clustering.mend(4, Distance(), 7)
        return values([clustering.label, clustering.centroid, clustering.total, clustering.count])

    with Pretend() as mode:
        on_device = clusters_on(Pretended)
    on_cpu = clusters_on(lambda tensor: tensor)
    assert len(mode.waits) == 2, mode.waits
    assert int(on_cpu[-1].min()) > 0 and torch.equal(on_cpu[0], on_device[0]) and torch.equal(on_cpu[-1], on_device[-1])
    assert_close(on_device, on_cpu, rtol=0, atol=1e-12)


def test_equal_rows_are_halved_at_random():
    vector = torch.ones(10, 3, dtype=torch.float64) / 3**0.5
    total, count = torch.zeros(2, 3, dtype=torch.float64), torch.zeros(2, dtype=torch.int64)
    now = Clustering(vector, torch.zeros(10, dtype=torch.int64), torch.zeros_like(total), total, count)
    now.recount()
    now.mend(2, Distance(), 0)
    assert now.count.tolist() == [5, 5]
    assert_close(now.centroid, vector[:2], rtol=0, atol=1e-12)
    alone = Clustering(vector[:1], torch.zeros(1, dtype=torch.int64), total, total.clone(), torch.tensor([1, 0]))
    alone.mend(1, Distance(), 0)
    assert alone.count.tolist() == [1, 0]


def test_sums_are_recomputed_from_time_to_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_RECOUNT", 2)
    store = filled_store(ClusteredBank(0.5, clusters=3, smallest=0), 12)
    store.total += 1.0
    store.write(fresh([0], 5))
    with pytest.raises(AssertionError):
        assert_consistent(store)
    store.write(fresh([1], 6))
    assert_consistent(store)


def test_clusterings_follow_whole_passes_and_start_from_different_rows():
    choice = ReclusteredBank(0.0, clusters=3, clusterings=4, every=2, first=2)
    store, clustering_steps = choice.build(9, 3), []
    for step in range(21):
        before = store.label.clone()
        store.write(fresh([(3 * step + i) % 9 for i in range(3)], step))
        if not torch.equal(before, store.label):
            clustering_steps.append(step + 1)
    assert clustering_steps == [6, 12, 18], "after passes 2, 4 and 6, though the batch divides the images"
    assert store.label.shape == (9, 4) and store.label.max() == 2
    assert len({tuple(column) for column in store.label.T.tolist()}) > 1


def test_they_fit_themselves():
    assert (ClusteredBank().fit_to(1_281_167, 256).clusters, ReclusteredBank().fit_to(1_281_167, 256).clusters) == (
        10_000,
        30_000,
    )
    assert ClusteredBank().fit_to(50_000, 256).clusters == 390
    assert [ReclusteredBank(first=10).stretch(by, 1.0).first for by in (0.01, 1.0, 2.5)] == [1, 10, 25]
    tiny = ClusteredBank().fit_to(40, 8)
    assert (tiny.clusters, tiny.smallest) == (2, 5)


def test_impossible_settings_are_refused():
    for choice in (ClusteredBank(clusters=9), ReclusteredBank(clusters=9)):
        with pytest.raises(UserError, match=r"Run\.fit"):
            choice.build(8, 3)
    with pytest.raises(UserError, match="clusters is 1; it must be 2 or more"):
        ClusteredBank(clusters=1)  # with one cluster for all, no image has a negative
    with pytest.raises(UserError, match="refresh_every is 0"):
        ClusteredBank(refresh_every=0)
    with pytest.raises(UserError, match="clusterings is 0"):
        ReclusteredBank(clusterings=0)
    with pytest.raises(UserError, match="old row"):
        ClusteredBank(momentum=2.0)
