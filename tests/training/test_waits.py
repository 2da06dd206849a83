"""A training step never waits for its device, but at most twice where there are clusters, and computes there what it
computes on the CPU: every recipe, on the pretended device of `pretend_gpu.py`, without a GPU."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
import torch
from pretend_gpu import DEVICE, Pretend, Pretended, pretended, values
from stepping import BATCH, SIZE, Stepping, Views, pictures, small
from torch import Tensor
from torch.testing import assert_close

from vantage import allowing
from vantage.composition.fitting import change_all
from vantage.encoders import Encoder, SplitBatchNorm
from vantage.encoding import encode
from vantage.memory import ClusteredBank, ReclusteredBank
from vantage.recipes import RECIPES, VARIANTS
from vantage.training.run import Run
from vantage.views import ViewMaker

IMAGES, LARGE, CPU = 16, 224, torch.device("cpu")
QUICK = {"ring_moco", "cmc", "infomin", "local_aggregation", "interclr_moco", "instance_discrimination_nce"}
"""Every kind of memory, positives and rules; the other recipes are among the slow tests."""


def cases(recipes: Iterable[Any]) -> list[Any]:
    """A case for each recipe."""
    slow = pytest.mark.slow
    return [pytest.param(r, id=r.__name__, marks=() if r.__name__ in QUICK else slow) for r in recipes]


def one_of_each(size: int, kind: Callable[[Run], object]) -> list[Any]:
    """A recipe of each kind at this size, a quick one if there is any."""
    recipes = sorted((*RECIPES, *VARIANTS), key=lambda recipe: recipe.__name__ in QUICK)
    return [*{kind(recipe(size)): recipe for recipe in recipes}.values()]


def views_of(run: Run) -> object:
    """What decides how views are made."""
    return run.views


def evaluation_of(run: Run) -> object:
    """What decides how networks are evaluated."""
    return run.views, run.encoders


def passes_of(run: Run) -> object:
    """What decides in which passes accumulated parts are computed."""
    return type(run.encoders), *((type(branch.memory), branch.pool_views) for branch in run.branches)


ASKS = {ClusteredBank: 2, ReclusteredBank: 1}
"""How often a bank waits in one step at most. One whose clusters follow asks how large they are, and, where some are
too small, for the size of the largest after their rows have moved. One that is reclustered asks, at the end of a pass,
how many rows were written. Other banks never ask."""


def allowed_waits(run: Run) -> int:
    """Waits of a step, clusterings included."""
    return sum(ASKS.get(type(branch.memory), 0) for branch in run.branches)


@pytest.mark.parametrize("recipe", cases([*RECIPES, *VARIANTS]))
def test_a_step_does_not_wait_and_computes_what_the_cpu_computes(recipe):
    """From views on: both passes, the optimizer, all stores, and clusterings. The second epoch is counted: by then what
    is read once has been read."""
    with allowing("tiny"):
        check_steps(small(recipe(SIZE), IMAGES))


@pytest.mark.parametrize("recipe", cases(one_of_each(SIZE, passes_of)))
def test_accumulated_parts_do_not_wait_either(recipe):
    """They compute there what they compute on the CPU, too: keys of all parts first, or vectors of all parts twice."""
    with allowing("tiny"):
        run = small(recipe(SIZE), IMAGES)
        encoders = change_all(run.encoders, Encoder, lambda part: replace(part, normalization=SplitBatchNorm(2)))
        check_steps(replace(run, accumulate=2, encoders=encoders))


def check_steps(run: Run) -> None:
    """That steps of two epochs compute what they compute on the CPU, and that those of the second do not wait."""
    with Pretend() as mode:
        on_device = Stepping(run, IMAGES, Views.SENT)
        rows = [row for _ in range(2) for row in on_device.epoch(mode)]
    on_cpu = Stepping(run, IMAGES, Views.SENT, CPU)
    assert [loss for loss, _ in rows] == pytest.approx([loss for _ in range(2) for loss, _ in on_cpu.epoch()], abs=1e-5)
    for _, waits in rows[on_device.images.steps :]:
        assert len(waits) <= allowed_waits(run) <= 2, waits


@pytest.mark.parametrize("recipe", cases(one_of_each(SIZE, views_of)))
def test_views_do_not_wait_and_are_those_of_the_cpu(recipe):
    """Of whole images and of crops."""
    check_views(recipe(SIZE).views, torch.stack([pictures(IMAGES).image(n) for n in range(BATCH)]))


@pytest.mark.parametrize("recipe", cases(one_of_each(LARGE, views_of)))
def test_views_of_224_pixels_do_not_wait_and_are_those_of_the_cpu(recipe):
    """Many recipes make other views of large images than of small ones."""
    generator = torch.Generator().manual_seed(0)
    check_views(recipe(LARGE).views, torch.randint(256, (2, 3, 256, 240), dtype=torch.uint8, generator=generator))


def check_views(maker: ViewMaker, images: Tensor) -> None:
    """That these views of images do not wait, and are those of the CPU."""
    crops = [maker.crop(image, torch.Generator().manual_seed(3)) for image in images]
    batch = tuple(torch.stack(crop) for crop in zip(*crops, strict=True))

    def make_views(images: Tensor, batch: tuple[Tensor, ...]) -> list[Tensor]:
        first, second = (torch.Generator().manual_seed(seed) for seed in (1, 2))
        return [*maker.batch(images, first), *maker.finish(batch, second)]

    with Pretend() as mode:
        device_inputs = Pretended(images), tuple(map(Pretended, batch))
        make_views(*device_inputs)  # constants are sent once, and stay
        start = len(mode.waits)
        views = make_views(*device_inputs)
    assert mode.waits[start:] == []
    assert_close(values(views), make_views(images, batch), rtol=0, atol=1e-5)


@pytest.mark.parametrize("recipe", cases(one_of_each(SIZE, evaluation_of)))
def test_encoders_are_evaluated_on_a_device(recipe):
    """Of the small networks in a quick test, of the recipe's own in a slow one."""
    run = recipe(32)
    role = small(run, IMAGES).encoders if recipe.__name__ in QUICK else run.encoders
    for number, network in enumerate(encoders := role.build().encoders.eval()):
        view = run.views.evaluation(number if len(encoders) > 1 else None)
        crops = torch.stack([view.crop(pictures(IMAGES).image(n)) for n in range(2)])
        expected = encode(network.backbone, view.finish(crops))  # pyright: ignore
        with Pretend() as mode:
            network = pretended(network)
            for _ in range(2):  # constants are sent once, and stay
                start = len(mode.waits)
                images = view.finish(crops.to(DEVICE, non_blocking=True))
                features = encode(network.backbone, images)  # pyright: ignore
        assert features.device == DEVICE and mode.waits[start:] == []
        assert_close(values(features), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("views", [Views.RESIDENT, Views.STREAMED])
@pytest.mark.parametrize("name", ["moco_v2", "infomin", "cmc", "local_aggregation", "interclr", "everything"])
def test_whole_steps_with_their_views(name: str, views: Views):
    """Two epochs of three steps, with the states that they leave."""
    run = small(next(recipe for recipe in RECIPES if recipe.__name__ == name)(SIZE), 24)
    with Pretend() as mode:
        on_device = Stepping(run, 24, views)
        rows = [row for _ in range(2) for row in on_device.epoch(mode)]
    on_cpu = Stepping(run, 24, views, CPU)
    losses = [loss for _ in range(2) for loss, _ in on_cpu.epoch()]
    assert [loss for loss, _ in rows] == pytest.approx(losses, abs=1e-4)
    assert max(len(waits) for _, waits in rows[3:]) <= allowed_waits(run)
    ours, theirs = on_device.state(), on_cpu.state()
    assert set(ours) == set(theirs)
    for key, value in theirs.items():
        assert_close(ours[key], value, rtol=1e-3, atol=1e-3)
