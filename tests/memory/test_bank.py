"""The bank: one row an image, moved by an exponential mean."""

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from references import memory as reference
from torch.testing import assert_close

from vantage.errors import UserError
from vantage.memory import Bank
from vantage.records import Keys


@given(
    image=st.lists(st.integers(0, 5), min_size=1, max_size=12),
    momentum=st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]),
    seed=st.integers(0, 99),
)
def test_17_rows_move_as_the_loop_moves_them(image: list[int], momentum: float, seed: int):
    """Repeated images count as their mean, whatever the order; norms stay 1; other rows stay."""
    store = Bank(momentum).build(images=6, width=4).double()
    store.vector.copy_(synthetic.vectors(6, 4, seed))
    before, fresh = store.vector.clone(), Keys(synthetic.vectors(len(image), 4, seed + 1), torch.tensor(image))
    store.write(fresh)
    expected = reference.bank(before.tolist(), image, fresh.vector.tolist(), momentum)
    assert_close(store.vector, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)
    assert_close(store.vector.norm(dim=1), torch.ones(6, dtype=torch.float64), rtol=0, atol=1e-12)
    others = [row for row in range(6) if row not in image]
    assert torch.equal(store.vector[others], before[others])
    if momentum == 1:
        assert_close(store.vector, before, rtol=0, atol=1e-15)
    if momentum == 0 and len(set(image)) == len(image):
        assert_close(store.vector[image], fresh.vector, rtol=0, atol=1e-15)


@given(new=st.floats(0.05, 1.0), seed=st.integers(0, 9))
def test_17_a_weight_on_the_new_row_is_one_minus_ours(new: float, seed: int):
    store = Bank(1 - new).build(images=1, width=5).double()
    old, fresh = store.vector.clone(), synthetic.vectors(1, 5, seed)
    store.write(Keys(fresh, torch.zeros(1, dtype=torch.int64)))
    mixture = (1 - new) * old + new * fresh
    assert_close(store.vector, mixture / mixture.norm(), rtol=0, atol=1e-12)


def test_row_i_belongs_to_image_i_and_reading_gives_no_gradient():
    store = Bank().build(images=7, width=3)
    pool = store.read(synthetic.keys(2, 3, 0))
    assert pool.image.tolist() == list(range(7)) and not pool.vector.requires_grad
    assert_close(pool.vector.norm(dim=1), torch.ones(7))
    store.write(Keys(torch.eye(3).requires_grad_(), torch.tensor([5, 1, 2])))
    assert not store.vector.requires_grad


def test_saves_and_loads():
    store, other = Bank().build(images=7, width=3), Bank().build(images=7, width=3)
    store.write(Keys(torch.eye(3), torch.tensor([5, 1, 2])))
    assert not torch.equal(store.vector, other.vector)
    other.load_state_dict(store.state_dict())
    assert torch.equal(store.vector, other.vector)
    with pytest.raises(RuntimeError, match="size mismatch"):
        Bank().build(images=8, width=3).load_state_dict(store.state_dict())


@pytest.mark.parametrize("image", [[0, 7], [-1, 0]])
def test_an_image_it_does_not_have_is_refused_and_nothing_is_written(image: list[int]):
    store = Bank().build(images=7, width=2)
    before = store.vector.clone()
    with pytest.raises(UserError, match="bank of 7 images"):
        store.write(Keys(torch.eye(2), torch.tensor(image)))
    assert torch.equal(store.vector, before)


@pytest.mark.parametrize("momentum", [-0.1, 1.1])
def test_momentum_is_a_weight(momentum: float):
    with pytest.raises(UserError, match="weight on the old row"):
        Bank(momentum)
