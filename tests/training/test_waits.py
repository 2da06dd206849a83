"""A training step never waits for its device, and computes there what it computes on the CPU: every recipe, on the
pretended device of `pretended.py`, without a GPU."""

import pytest
import torch
from pretended import DEVICE, Pretend, Pretended, pretended, values
from stepping import BATCH, SIZE, Stepping, Views, pictures, small
from torch import Tensor
from torch.testing import assert_close

from vantage.encoding import encode
from vantage.memory import ClusteredBank
from vantage.recipes import RECIPES
from vantage.training.run import Run

IMAGES, CPU = 16, torch.device("cpu")
VIEWS = list(dict.fromkeys(recipe(SIZE).views for recipe in RECIPES))


def allowed(run: Run) -> int:
    """Waits of a step: each bank whose clusters follow at every step asks whether one of them has become too small."""
    return sum(isinstance(branch.memory, ClusteredBank) for branch in run.branches)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_a_step_does_not_wait_and_computes_what_the_cpu_computes(recipe):
    """From views on: both passes, the optimizer, all stores. The third step is counted: by then all clusters are
    there, and what is read once has been read."""
    run = small(recipe(SIZE), IMAGES)
    with Pretend() as mode:
        there = Stepping(run, IMAGES, Views.SENT)
        rows = [row for _ in range(2) for row in there.epoch(mode)][:3]
    here = Stepping(run, IMAGES, Views.SENT, CPU)
    assert [loss for loss, _ in rows] == pytest.approx(
        [loss for _ in range(2) for loss, _ in here.epoch()][:3], abs=1e-5
    )
    waits = [wait for wait in rows[-1][1] if not wait.clusters]
    assert len(waits) <= allowed(run), waits


@pytest.mark.parametrize("number", range(len(VIEWS)))
def test_views_do_not_wait_and_are_those_of_the_cpu(number: int):
    """Of whole images and of crops."""
    maker, images = VIEWS[number], torch.stack([pictures(IMAGES).image(n) for n in range(BATCH)])
    crops = [maker.crop(image, torch.Generator().manual_seed(3)) for image in images]
    joined = tuple(torch.stack(crop) for crop in zip(*crops, strict=True))

    def made(images: Tensor, joined: tuple[Tensor, ...]) -> list[Tensor]:
        first, second = (torch.Generator().manual_seed(seed) for seed in (1, 2))
        return [*maker.batch(images, first), *maker.finish(joined, second)]

    with Pretend() as mode:
        there = Pretended(images), tuple(map(Pretended, joined))
        made(*there)  # constants are sent once, and stay
        start = len(mode.waits)
        found = made(*there)
    assert mode.waits[start:] == []
    assert_close(values(found), made(images, joined), rtol=0, atol=1e-5)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.__name__)
def test_encoders_are_evaluated_on_a_device(recipe):
    run = small(recipe(SIZE), IMAGES)
    encoders = run.encoders.build().encoders.eval()
    for number, network in enumerate(encoders):
        view = run.views.evaluation(number if len(encoders) > 1 else None)
        crops = torch.stack([view.crop(pictures(IMAGES).image(n)) for n in range(4)])
        expected = encode(network.backbone, view.finish(crops))  # pyright: ignore
        with Pretend() as mode:
            found = encode(pretended(network).backbone, view.finish(crops.to(DEVICE, non_blocking=True)))  # pyright: ignore
            assert found.device == DEVICE
            start = len(mode.waits)
            features = found.cpu()
        assert [wait.what for wait in mode.waits[start:]] == ["copy from the device"]
        assert_close(features, expected, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("views", [Views.RESIDENT, Views.STREAMED])
@pytest.mark.parametrize("name", ["moco_v2", "infomin", "cmc", "local_aggregation", "interclr", "everything"])
def test_whole_steps_with_their_views(name: str, views: Views):
    """Two epochs of six steps, with the states that they leave."""
    run = small(next(recipe for recipe in RECIPES if recipe.__name__ == name)(SIZE), 48)
    with Pretend() as mode:
        there = Stepping(run, 48, views)
        rows = [row for _ in range(2) for row in there.epoch(mode)]
    here = Stepping(run, 48, views, CPU)
    losses = [loss for _ in range(2) for loss, _ in here.epoch()]
    assert [loss for loss, _ in rows] == pytest.approx(losses, abs=1e-4)
    counts = [len(waits) for _, waits in rows[6:] if not any(wait.clusters for wait in waits)]
    assert counts and max(counts) <= allowed(run)
    ours, theirs = there.state(), here.state()
    assert set(ours) == set(theirs)
    for key, value in theirs.items():
        assert_close(ours[key], value, rtol=1e-3, atol=1e-3)
