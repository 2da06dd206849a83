"""The contract of memories: what every store must do. A public memory that is missing here fails."""

from dataclasses import is_dataclass, replace
from inspect import isabstract

import pytest
import synthetic
import torch

from vantage import memory
from vantage.memory import (
    Bank,
    Blocks,
    ClusteredBank,
    InBatch,
    InnerProduct,
    LabeledBank,
    Memory,
    Queue,
    ReclusteredBank,
    Store,
)
from vantage.records import Keys

CONTRACT: tuple[Memory, ...] = (
    InBatch(),
    Queue(5),
    Bank(0.3),
    Bank(0.3, sharded=True),
    ClusteredBank(0.3, clusters=3, refresh_every=2, smallest=2),
    ClusteredBank(0.3, clusters=4, refresh_every=1, smallest=3, closeness=InnerProduct()),
    ReclusteredBank(0.3, clusters=3, clusterings=2),
    LabeledBank(0.3, Blocks(3)),
)
"""At least one instance of every memory."""

every_memory = pytest.mark.parametrize("choice", CONTRACT, ids=str)


def batch(number: int) -> Keys:
    return Keys(synthetic.vectors(4, 3, number, torch.float32), (torch.arange(4) + 4 * number) % 12)


def test_every_memory_is_in_the_contract():
    public = {getattr(memory, name) for name in memory.__all__}
    assert {part for part in public if is_dataclass(part) and hasattr(part, "build")} == {
        type(choice) for choice in CONTRACT
    }
    stores = {part for part in public if isinstance(part, type) and issubclass(part, Store) and not isabstract(part)}
    assert stores == {type(choice.build(12, 3)) for choice in CONTRACT}


@every_memory
def test_a_choice_is_its_own_configuration(choice):
    assert isinstance(choice, Memory)
    assert replace(choice) == choice and eval(repr(choice), vars(memory)) == choice


@every_memory
def test_all_that_changes_is_saved(choice: Memory):
    """A store loaded from another's state continues as that one does; nothing else is kept."""
    one = choice.build(images=12, width=3)
    for number in range(3):
        one.write(batch(number))
    two = choice.build(images=12, width=3)
    two.load_state_dict(one.state_dict())
    for number in range(3, 6):
        mine, other = one.read(batch(number)), two.read(batch(number))
        assert torch.equal(mine.vector, other.vector) and torch.equal(mine.image, other.image)
        if mine.cluster is not None:
            assert torch.equal(mine.cluster, other.clusters)
        one.write(batch(number))
        two.write(batch(number))
    assert list(one.parameters()) == []


@every_memory
def test_reading_changes_nothing_and_writing_keeps_kinds(choice: Memory):
    store = choice.build(images=12, width=3)
    before = {name: value.clone() for name, value in store.state_dict().items()}
    store.read(batch(0))
    assert all(torch.equal(value, before[name]) for name, value in store.state_dict().items())
    store.write(Keys(batch(1).vector.double(), batch(1).image))
    assert all(value.dtype == before[name].dtype for name, value in store.state_dict().items())


@every_memory
def test_the_pool_of_a_step_holds_no_key_of_that_step_unless_in_batch(choice: Memory):
    """Query, then remember: otherwise each positive is a negative too, and the loss stays above log 2."""
    store = choice.build(images=12, width=3)
    fresh = batch(2)
    pool = store.read(fresh)
    shared = (pool.vector @ fresh.vector.T > 1 - 1e-6).any()
    assert bool(shared) == isinstance(choice, InBatch)


@every_memory
def test_an_empty_write_changes_nothing(choice: Memory):
    store = choice.build(images=12, width=3)
    before = {name: value.clone() for name, value in store.state_dict().items()}
    store.write(Keys(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)))
    assert all(torch.equal(value, before[name]) for name, value in store.state_dict().items())


def test_keys_in_the_batch_keep_their_gradient():
    fresh = Keys(torch.eye(3).requires_grad_(), torch.arange(3))
    assert InBatch().build(3, 3).read(fresh).vector.requires_grad
