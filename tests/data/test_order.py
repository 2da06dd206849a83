"""The order of an epoch, and that the processes' shares make up exactly the joined batches."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vantage.data.order import BatchOrder, epoch_order, image_seed, steps_in
from vantage.errors import DataError


@given(count=st.integers(1, 500), seed=st.integers(0, 2**40), epoch=st.integers(0, 1000))
def test_an_order_is_a_function_of_seed_and_epoch(count: int, seed: int, epoch: int) -> None:
    order = epoch_order(count, seed, epoch)
    assert torch.equal(order, epoch_order(count, seed, epoch))
    assert torch.equal(order.sort().values, torch.arange(count))


def test_orders_differ() -> None:
    orders = [tuple(epoch_order(50, seed, epoch).tolist()) for seed in range(5) for epoch in range(5)]
    assert len(set(orders)) == 25


def test_an_order_leaves_the_default_generator_alone() -> None:
    before = torch.random.get_rng_state()
    epoch_order(100, 0, 0)
    assert torch.equal(before, torch.random.get_rng_state())


@given(
    world=st.integers(1, 6),
    parts=st.integers(1, 4),
    own=st.integers(1, 7),
    steps=st.integers(1, 5),
    rest=st.integers(0, 5),
)
def test_the_shares_of_all_ranks_are_the_joined_batches(
    world: int, parts: int, own: int, steps: int, rest: int
) -> None:
    """Part by part, if batches are accumulated: a part has the same images on any number of processes."""
    batch = world * parts * own
    order = epoch_order(steps * batch + min(rest, batch - 1), 3, 1)
    ranks = [BatchOrder(batch, 0, rank, world, parts).share(order) for rank in range(world)]
    assert all(share.shape == (steps, parts * own) for share in ranks)
    for step in range(steps):
        joint = order[step * batch : (step + 1) * batch]
        assert torch.equal(BatchOrder(batch, accumulate=parts).share(order)[step], joint)
        for number, part in enumerate(joint.chunk(parts)):
            assert torch.equal(torch.cat([share[step].chunk(parts)[number] for share in ranks]), part)


def test_too_few_images_for_a_batch() -> None:
    with pytest.raises(DataError, match="batches of 64 images were asked for, but there are 63"):
        BatchOrder(64).share(torch.arange(63))
    with pytest.raises(DataError, match="batch size of 1 to 5"):
        steps_in(5, 0)
    assert steps_in(64, 64) == 1


def test_a_batch_that_cannot_be_shared() -> None:
    with pytest.raises(DataError, match="multiple of 3"):
        BatchOrder(64, 0, 0, 3)
    with pytest.raises(DataError, match="multiple of 12"):
        BatchOrder(64, 0, 0, 4, accumulate=3)


def test_image_seeds_do_not_collide() -> None:
    seeds = {image_seed(seed, epoch, image) for seed in range(2) for epoch in range(5) for image in range(500)}
    assert len(seeds) == 5_000
