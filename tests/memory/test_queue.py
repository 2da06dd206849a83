"""The queue: any batch against any length."""

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from references import memory as reference
from torch.testing import assert_close

from vantage.errors import UserError
from vantage.memory import Queue
from vantage.records import Keys


@given(length=st.integers(1, 12), batches=st.lists(st.integers(0, 30), max_size=6), break_at=st.integers(0, 6))
def test_18_holds_the_newest_keys_of_any_batches(length: int, batches: list[int], break_at: int):
    """Against a list that appends and pops; with a save and a load into a fresh store on the way."""
    store = Queue(length).build(images=100, width=3).double()
    keys, number = [*store.vector.tolist()], 0
    images = [-1] * length
    for count, size in enumerate(batches):
        if count == break_at:
            state, store = store.state_dict(), Queue(length).build(images=100, width=3).double()
            store.load_state_dict(state)
        fresh = Keys(synthetic.vectors(size, 3, number + 7), torch.arange(number, number + size))
        store.write(fresh)
        keys = reference.queue(length, keys, [fresh.vector.tolist()])
        images, number = (images + fresh.image.tolist())[-length:], number + size
    pool = store.read(synthetic.keys(1, 3, 0))
    oldest = int(store.oldest)
    assert torch.equal(pool.vector.roll(-oldest, 0), torch.tensor(keys, dtype=torch.float64))
    assert pool.image.roll(-oldest, 0).tolist() == images


def test_starts_with_random_unit_vectors_of_no_image():
    pool = Queue(500).build(images=10, width=8).read(synthetic.keys(1, 8, 0))
    assert_close(pool.vector.norm(dim=1), torch.ones(500))
    assert (pool.image == -1).all()
    assert pool.vector.mean(0).norm() < 0.15


def test_reading_does_not_depend_on_fresh_keys_and_gives_no_gradient():
    store = Queue(4).build(images=10, width=2)
    fresh = Keys(torch.eye(2).requires_grad_(), torch.arange(2))
    before = store.read(fresh).vector.clone()
    assert torch.equal(before, store.read(synthetic.keys(3, 2, 5)).vector)
    store.write(fresh)
    assert not store.read(fresh).vector.requires_grad
    assert torch.equal(store.read(fresh).vector[:2], torch.eye(2))


def test_a_length_of_nothing_is_refused():
    with pytest.raises(UserError, match="InBatch"):
        Queue(0)


@given(images=st.integers(2, 2_000_000), batch=st.integers(1, 4096))
def test_a_fitted_queue_is_at_most_half_of_the_images(images: int, batch: int):
    queue = Queue().fit_to(images, batch)
    assert 1 <= queue.length <= 65_536
    assert queue.length <= max(1, images // 2)
