"""What of several keys of an image is remembered."""

from dataclasses import replace

import pytest
import small_recipes
import synthetic
import torch
from references import losses as reference
from torch.testing import assert_close

from vantage.estimators import JCL
from vantage.memory import remember
from vantage.memory.remember import EachKey, MeanKey, Remember, UnitMeanKey
from vantage.recipes import jcl
from vantage.records import Keys
from vantage.schedules import Constant

CONTRACT: tuple[Remember, ...] = (EachKey(), MeanKey(), UnitMeanKey())
KEYS = tuple(Keys(synthetic.vectors(4, 6, seed), torch.tensor([5, 2, 9, 2])) for seed in range(3))


def test_every_way_is_in_the_contract():
    public = {getattr(remember, name) for name in remember.__all__} - {Remember}
    assert public == {type(part) for part in CONTRACT}


@pytest.mark.parametrize("part", CONTRACT, ids=str)
def test_one_view_is_remembered_as_it_is(part: Remember):
    assert isinstance(part, Remember) and eval(repr(part), vars(remember)) == part
    actual = part(KEYS[:1])
    assert_close(actual.vector, KEYS[0].vector, rtol=0, atol=1e-15)
    assert torch.equal(actual.image, KEYS[0].image)


def test_each_and_mean():
    every, mean, unit = (part(KEYS) for part in CONTRACT)
    assert every.image.tolist() == [5, 2, 9, 2] * 3 and torch.equal(every.vector[4:8], KEYS[1].vector)
    for row in range(4):
        expected = sum(key.vector[row] for key in KEYS) / 3
        assert_close(mean.vector[row], expected, rtol=0, atol=1e-15)
        assert_close(unit.vector[row], expected / expected.norm(), rtol=0, atol=1e-15)
    assert mean.image.tolist() == unit.image.tolist() == [5, 2, 9, 2]
    assert (mean.vector.norm(dim=1) < 1).all()


def test_jcl_is_its_loop_and_remembers_means():
    """The whole recipe: five keys of a momentum encoder, Eq. 8 over the queue, the plain mean enqueued, no gradient to
    keys."""
    run = small_recipes.shrink(jcl(32), None)
    estimator = JCL(0.2, Constant(4.0))
    run = replace(run, branches=(replace(run.branches[0], estimator=estimator),))
    learner = small_recipes.learner(run)
    views, image = small_recipes.batches(1, learner.views)[0]
    fast, slow, store = learner.networks.network, learner.networks.slow, learner.store(0)  # pyright: ignore
    queue = store.vector.clone()  # pyright: ignore
    step = learner(views, image, 0)
    near, query = torch.stack([slow(view) for view in views[1:]], 1), fast(views[0])  # pyright: ignore
    rows = [reference.jcl(query[i], near[i], list(queue), 0.2, 4.0) for i in range(len(image))]
    assert_close(step.loss, torch.stack(rows).mean(), rtol=0, atol=1e-10)
    step.loss.backward()
    assert all(parameter.grad is None for parameter in slow.parameters())  # pyright: ignore
    learner.after_step([step.fresh], 0)
    assert_close(store.vector[:8], near.mean(1), rtol=0, atol=1e-12)  # pyright: ignore
    assert store.image[:8].tolist() == image.tolist() and int(store.oldest) == 8  # pyright: ignore
