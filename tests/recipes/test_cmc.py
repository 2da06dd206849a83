"""CMC against its loop, its symmetry, and what comes after training with a network for each view."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small_recipes
import synthetic
import tiny
import torch
from references import losses as reference
from safetensors.torch import load_file
from small_runs import small_run, write_images
from torch.testing import assert_close

from vantage.composition.codec import allowing
from vantage.data import open_source
from vantage.encoders import PerView, ResNet
from vantage.errors import UserError
from vantage.estimators import NCE
from vantage.evaluate import KNN, evaluate
from vantage.frozen.encoder import load, random_encoder, raw_pixels
from vantage.frozen.export.backbone import export
from vantage.frozen.features import embed
from vantage.negatives import Sample
from vantage.recipes import cave_cmc, cmc, cmc_softmax, ring_cmc, ring_cmc_clusters
from vantage.records import Keys
from vantage.training.backbone import evaluation_view
from vantage.training.loop import train
from vantage.training.run import Run
from vantage.views import Lab


def test_cmc_is_its_loop():
    """Each modality against the other's bank, over the same drawn rows; the sum of both, not the mean."""
    run = small_recipes.shrink(cmc_softmax(32), None)
    learner = small_recipes.learner(run)
    views, image = small_recipes.batches(1, small_recipes.shapes(run))[0]
    step = learner(views, image, 0)
    networks: Any = learner.networks.encoders
    lightness, color = (network(view) for network, view in zip(networks, views, strict=True))
    of_color, of_lightness = (learner.store(number) for number in range(2))
    query = Keys(lightness, image, seed=synthetic.query_seeds(run.seed, 0, image))
    columns = Sample(7).blindly(query, small_recipes.IMAGES).tolist()
    pairs: Any = ((lightness, of_color), (color, of_lightness))
    expected = sum(reference.instance_discrimination(q, bank.vector, image.tolist(), columns, 0.1) for q, bank in pairs)
    assert_close(step.loss, expected, rtol=0, atol=1e-10)
    banks: Any = (of_color, of_lightness)
    rows = [bank.vector[image] + vector for bank, vector in zip(banks, (color, lightness), strict=True)]
    learner.after_step([step.fresh], 0)
    for bank, row in zip(banks, rows, strict=True):  # each remembers the modality that answers
        assert_close(bank.vector[image], torch.nn.functional.normalize(row, dim=1), rtol=0, atol=1e-12)


def with_modalities_swapped(run: Run) -> Run:
    """The same method with the modalities in the other order."""
    assert isinstance(run.encoders, PerView)
    other = tuple(replace(branch, query=1 - branch.query, pool=(1 - branch.pool_views[0],)) for branch in run.branches)
    return replace(run, encoders=PerView(run.encoders.encoders[::-1]), branches=other)


@pytest.mark.parametrize("recipe", [cmc, cmc_softmax, ring_cmc, cave_cmc, ring_cmc_clusters], ids=lambda r: r.__name__)
def test_19_swapping_the_modalities_leaves_the_loss_unchanged(recipe):
    run = small_recipes.shrink(recipe(32), None)
    assert with_modalities_swapped(run).branches == run.branches[::-1]  # each meets the other's bank
    learner, mirror = small_recipes.learner(run), small_recipes.learner(with_modalities_swapped(run))
    for mine, theirs in zip(mirror.networks.encoders, reversed(list(learner.networks.encoders)), strict=True):
        mine.load_state_dict(theirs.state_dict())
    for number in range(2):
        mirror.store(number).load_state_dict(learner.store(number).state_dict())
    for step, (views, image) in enumerate(small_recipes.batches(4, small_recipes.shapes(run))):
        step_loss, other = learner(views, image, step), mirror(views[::-1], image, step)
        assert_close(step_loss.loss, other.loss, rtol=0, atol=1e-12)
        learner.after_step([step_loss.fresh], step)
        mirror.after_step([other.fresh], step)


def test_each_direction_has_a_normalizer_of_its_own():
    run = small_recipes.shrink(cmc(32), None)
    assert all(isinstance(branch.estimator, NCE) for branch in run.branches)
    learner = small_recipes.learner(run)
    views, image = small_recipes.batches(1, small_recipes.shapes(run))[0]
    learner(views, image, 0)
    constants = [float(learner.estimators[str(number)].log_normalizer) for number in range(2)]  # pyright: ignore
    assert constants[0] != constants[1] and all(abs(value) < 20 for value in constants)


def test_the_networks_have_one_and_two_channels():
    role = cmc(224).encoders
    assert isinstance(role, PerView)
    assert [encoder.backbone for encoder in role.encoders] == [ResNet(50, in_channels=c) for c in (1, 2)]


@pytest.fixture(scope="module")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("cmc")
    path = write_images(folder / "images.npz")
    with allowing("tiny"):
        train(small_run("cmc_softmax", path, epochs=1), folder / "run")
    return folder / "run", path


def test_features_of_both_networks_are_joined(trained_run: tuple[Path, str], tmp_path: Path):
    """As CMC is evaluated; or those of one network, which sees its channels only."""
    folder, path = trained_run
    source = open_source(path)
    both, one, two = (load(folder, network) for network in (None, 0, 1))
    vectors = [embed(part, source, tiny.cpu_work(tmp_path)).vector for part in (both, one, two)]
    assert both.width == one.width + two.width and both.choice is None
    assert_close(vectors[0], torch.cat(vectors[1:], 1), rtol=1e-5, atol=1e-6)
    assert [part.view.channels for part in (both, one, two)] == [(0, 1, 2), (0,), (1, 2)]
    assert both.view.space == Lab() and both.view.statistics == Lab().statistics
    again = load(folder)
    assert again.digest() == both.digest() != random_encoder(both.run).digest()


def test_baselines_see_the_same_channels(trained_run: tuple[Path, str]):
    run = load(trained_run[0]).run
    assert raw_pixels(run).width == 3 * 16 * 16 and raw_pixels(run, 1).width == 2 * 16 * 16
    assert random_encoder(run).width == 24 and random_encoder(run, network=0).view == evaluation_view(run, 0)


def test_evaluation_and_probe_take_both(trained_run: tuple[Path, str], tmp_path: Path):
    folder, path = trained_run
    result = evaluate(folder, KNN(k=5), open_source(path), baselines=True, work=tiny.cpu_work(tmp_path))
    assert set(result.outcomes) == {"cmc_softmax", "raw pixels", "random encoder"}
    assert all(outcome.accuracy.top1 > 50 for outcome in result.outcomes.values()), "colors show the class"


def test_one_network_is_exported(trained_run: tuple[Path, str], tmp_path: Path):
    """Both at once fit no other library's network, so which one must be said."""
    with pytest.raises(UserError, match="--network 0"), allowing("tiny"):
        export(trained_run[0], "safetensors", tmp_path / "both.safetensors")
    with pytest.raises(UserError, match="network 2 was asked for"), allowing("tiny"):
        export(trained_run[0], "safetensors", tmp_path / "both.safetensors", network=2)
    assert not (tmp_path / "both.safetensors").exists()


@pytest.mark.slow
def test_a_network_of_two_channels_loads_elsewhere(tmp_path: Path):
    run = cmc(32)
    tiny.saved_run(tmp_path / "run", run)
    file = export(tmp_path / "run", "torchvision", tmp_path / "color.safetensors", network=1)
    assert "Conv2d(2, 64" in file.how
    names: dict[str, Any] = {}
    exec(file.how, names)  # noqa: S102
    images = torch.rand(2, 2, 32, 32)
    ours = load(tmp_path / "run", 1).backbone
    assert_close(names["model"](images), ours(images), rtol=1e-5, atol=1e-5)
    assert load_file(tmp_path / "color.safetensors")["conv1.weight"].shape[1] == 2
