"""PIRL against its loop, its two ends, and its jigsaw branch beside a momentum encoder, as InfoMin has it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small_recipes
import synthetic
import torch
from references import losses as reference
from references import memory
from small_runs import small_run, write_images
from tiny import TinyBackbone
from torch import Tensor
from torch.nn.functional import normalize
from torch.testing import assert_close

import vantage
from vantage.encoders import SplitBatchNorm
from vantage.encoding import Work
from vantage.learner import Learner, Step
from vantage.negatives import Sample
from vantage.recipes import infomin, instance_discrimination, moco_v2, pirl
from vantage.records import Keys
from vantage.schedules import Constant
from vantage.training.feed import Feed
from vantage.training.loop import train
from vantage.training.run import Run


def views_of(run: Run) -> tuple[list[Tensor], Tensor]:
    return small_recipes.batches(1, small_recipes.shapes(run))[0]


def with_weights(run: Run, *weights: float) -> Run:
    branches = zip(run.branches, weights, strict=True)
    return replace(run, branches=tuple(replace(branch, weight=Constant(weight)) for branch, weight in branches))


def gradients(learner: Learner, views: list[Tensor], image: Tensor) -> tuple[Step, dict[str, Tensor]]:
    """One step's loss, and its gradient to every learning parameter by name."""
    step = learner(views, image, 0)
    parameter_of = {name: p for name, p in learner.networks.named_parameters() if p.requires_grad}
    gradient = torch.autograd.grad(step.loss, list(parameter_of.values()), allow_unused=True, materialize_grads=True)
    return step, dict(zip(parameter_of, gradient, strict=True))


def learner_like(run: Run, other: Learner) -> Learner:
    """A learner of `run` with what it shares with another: networks, and the first store in all of its own."""
    learner, state = small_recipes.learner(run), other.state_dict()
    mine = learner.state_dict()
    for name in mine:
        store, _, rest = name.partition(".")[2].partition(".")
        shared_name = f"stores.0.{rest}" if name.startswith("stores.") and store else name
        mine[name] = state[shared_name]
    learner.load_state_dict(mine)
    return learner


def test_pirl_is_its_loop():
    """Half the cross-entropy of the image and half of its jigsaw: the same own row, the same drawn rows."""
    run = small_recipes.shrink(pirl(32), None)
    learner, (views, image) = small_recipes.learner(run), views_of(run)
    step, actual = gradients(learner, views, image)
    network: Any = learner.networks.encoders[0]
    features = torch.stack([network.backbone(views[1][:, position]) for position in range(9)], 1)
    each = torch.cat([network.jigsaw.patch(features[:, position]) for position in range(9)], 1)
    queries = (network(views[0]), normalize(network.jigsaw.joined(each), dim=1))
    query_keys = Keys(queries[0], image, seed=synthetic.query_seeds(run.seed, 0, image))
    columns = Sample(7).blindly(query_keys, small_recipes.IMAGES).tolist()
    banks: list[Any] = [learner.store(number) for number in range(2)]
    losses = [
        reference.instance_discrimination(query, bank.vector, image.tolist(), columns, 0.07)
        for query, bank in zip(queries, banks, strict=True)
    ]
    expected = 0.5 * losses[0] + 0.5 * losses[1]
    assert_close(step.loss, expected, rtol=0, atol=1e-10)
    theirs = torch.autograd.grad(expected, list(learner.networks.parameters()))
    for ours, gradient in zip(actual.values(), theirs, strict=True):
        assert_close(ours, gradient, rtol=0, atol=1e-10)


def test_only_whole_images_are_remembered():
    run = small_recipes.shrink(pirl(32), None)
    learner, (views, image) = small_recipes.learner(run), views_of(run)
    banks: list[Any] = [learner.store(number) for number in range(2)]
    before = [bank.vector.tolist() for bank in banks]
    step = learner(views, image, 0)
    assert set(step.fresh.vectors) == {0}
    learner.after_step([step.fresh], 0)
    whole = learner.networks.encoders[0](views[0]).tolist()
    for bank, old in zip(banks, before, strict=True):
        expected = memory.bank(old, image.tolist(), whole, 0.5)
        assert_close(bank.vector, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


def test_19_without_the_jigsaw_it_is_instance_discrimination():
    run = with_weights(small_recipes.shrink(pirl(32), SplitBatchNorm(2)), 1.0, 0.0)
    learner, (views, image) = small_recipes.learner(run), views_of(run)
    plain = small_recipes.shrink(instance_discrimination(32), SplitBatchNorm(2))
    plain = replace(plain, branches=(replace(plain.branches[0], estimator=run.branches[0].estimator),))
    step, actual = gradients(learner, views, image)
    other, expected = gradients(learner_like(plain, learner), views[:1], image)
    assert_close(step.loss, other.loss, rtol=0, atol=1e-12)
    assert set(actual) - set(expected) == {name for name in actual if ".jigsaw." in name} != set()
    for name, gradient in actual.items():
        assert_close(gradient, expected.get(name, torch.zeros_like(gradient)), rtol=0, atol=1e-12)


def test_19_without_the_image_it_is_the_jigsaw_only():
    run = with_weights(small_recipes.shrink(pirl(32), None), 0.0, 1.0)
    learner, (views, image) = small_recipes.learner(run), views_of(run)
    step, actual = gradients(learner, views, image)
    only, expected = gradients(learner_like(small_recipes.only(run, 1), learner), views, image)
    assert_close(step.loss, only.loss, rtol=0, atol=1e-12)
    for name, gradient in actual.items():
        assert_close(gradient, expected[name], rtol=0, atol=1e-12)
        assert gradient.any() == (".head." not in name), "whole images answer, but do not learn"


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_19_infomins_jigsaw_has_mocos_key_and_without_it_is_moco(share: float):
    run = with_weights(small_recipes.shrink(infomin(32), SplitBatchNorm(2)), 1 - share, share)
    learner, (views, image) = small_recipes.learner(run), views_of(run)
    step, actual = gradients(learner, views, image)
    plain = small_recipes.shrink(moco_v2(32), SplitBatchNorm(2))
    plain = replace(plain, branches=(replace(plain.branches[0], estimator=run.branches[0].estimator),))
    other, expected = gradients(learner_like(plain, learner), views[:2], image)
    if share == 0.0:
        assert_close(step.loss, other.loss, rtol=0, atol=1e-12)
        for name, gradient in actual.items():
            assert_close(gradient, expected.get(name, torch.zeros_like(gradient)), rtol=0, atol=1e-12)
        return
    network: Any = learner.networks.encoders[0]
    queue: Any = learner.store(0)
    key = step.fresh.vectors[1]
    temperature: Any = run.branches[0].estimator.temperature  # pyright: ignore
    jigsaw = reference.moco(network(views[2]), key, queue.vector, temperature)
    assert_close(step.loss, 0.5 * other.loss + 0.5 * jigsaw, rtol=0, atol=1e-10)
    assert all(gradient.any() for gradient in actual.values())
    learner.after_step([step.fresh], 0)
    assert torch.equal(queue.vector[:8], key), "patches are not remembered"


@pytest.mark.parametrize("resident", [0, 1 << 30])
def test_it_trains_on_images_that_are_streamed_or_resident(resident: int, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    batches, views_of_feed = [], Feed.views_of

    def record_views(self: Feed, batch, generator):
        batches.append(views_of_feed(self, batch, generator))
        return batches[-1]

    monkeypatch.setattr(Feed, "views_of", record_views)
    run = small_run("pirl", write_images(tmp_path / "images.npz"), epochs=1)
    run = replace(run, data=replace(run.data, resident_bytes=resident, num_workers=0))
    assert train(run, tmp_path / "run").finished
    whole, patches = batches[0]
    assert whole.shape == (8, 3, 16, 16) and patches.shape == (8, 9, 3, 5, 5)
    for images in (whole, patches.flatten(0, 1)):
        assert images.is_contiguous(memory_format=torch.channels_last)


def test_only_the_backbone_remains(tmp_path: Path, monkeypatch):
    """Loaded, embedded and exported alone, for whole images of the view's size."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    path = write_images(tmp_path / "images.npz")
    run = small_run("pirl", path, epochs=1)
    run = replace(run, monitoring=replace(run.monitoring, knn_every=1))
    train(run, tmp_path / "run")
    encoder = vantage.load(tmp_path / "run")
    assert set(encoder.backbone.state_dict()) == set(TinyBackbone().build().state_dict())
    assert encoder.view.size == 16
    vector = vantage.embed(encoder, vantage.open_source(path), Work("cpu")).vector
    assert vector.shape == (48, encoder.width) and vector.std(0).min() > 0
