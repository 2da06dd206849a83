"""Multi-crop: small views beside whole ones, by both routes, and the runs whose branches they ask."""

from dataclasses import replace

import pytest
import small_recipes
import torch

import vantage
from vantage.errors import UserError
from vantage.memory import InBatch, Queue, StoreOf
from vantage.schedules import Constant, Linear
from vantage.views import RandomResizedCrop, ViewMaker, Views, moco_v2_views, multi_crop_views, simclr_views
from vantage.views.show import picture


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pictures(count: int, height: int, width: int) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, height, width), dtype=torch.uint8, generator=generator())


def test_small_views_follow_the_whole_ones_with_the_same_operations() -> None:
    views = multi_crop_views(simclr_views(224))
    assert isinstance(views, ViewMaker) and views.count == 8 and views.views[:2] == simclr_views(224).views
    for small in views.views[2:]:
        assert small.crop == RandomResizedCrop(96, (0.05, 0.14)) and small.operations == views.views[0].operations


def test_both_routes_make_views_of_both_sizes() -> None:
    views = multi_crop_views(moco_v2_views(32), 3, 14, (0.1, 0.3))
    sizes = [(5, 3, 32, 32)] * 2 + [(5, 3, 14, 14)] * 3
    images = pictures(5, 40, 33)
    batch = views.batch(images, generator())
    assert [tuple(view.shape) for view in batch] == sizes
    assert not torch.equal(batch[2], batch[3])  # each its own part
    crops = [views.crop(image, generator(number)) for number, image in enumerate(images)]
    outputs = views.finish(tuple(torch.stack(part) for part in zip(*crops, strict=True)), generator())
    assert [tuple(view.shape) for view in outputs] == sizes


def test_a_small_view_shows_the_requested_share() -> None:
    small = multi_crop_views(moco_v2_views(224), 1).views[2].crop
    boxes = small.boxes(small.draw(500, generator()), 600, 800)
    share = (boxes.height * boxes.width).double() / (600 * 800)
    assert 0.049 < share.min() < 0.06 and 0.13 < share.max() < 0.141


def test_they_can_be_shown() -> None:
    views = multi_crop_views(moco_v2_views(32), 2, 14, (0.1, 0.3))
    image = picture(views, list(pictures(2, 40, 40)), times=1, side=32)
    assert image.width == 5 * (32 + 4) + 4 + 10  # a gap between the image and its views


def test_no_small_views_are_refused() -> None:
    with pytest.raises(UserError, match="at least 1"):
        multi_crop_views(moco_v2_views(32), 0)


def test_small_views_of_moco_share_the_key_and_the_queue_of_the_whole_one() -> None:
    run = vantage.moco_v2_multi_crop(224)
    (first, *others) = run.branches
    assert isinstance(first.memory, Queue) and first.query == 0 and first.weight == Constant(1 / 7)
    assert others == [replace(first, memory=StoreOf(0), query=view) for view in range(2, 8)]
    assert isinstance(run.views, Views) and run.views.views[2].crop == RandomResizedCrop(96, (0.05, 0.14))
    assert vantage.moco_v2_multi_crop(32).views.count == 8


def test_small_views_of_simclr_are_queries_in_both_directions_and_never_keys() -> None:
    run = vantage.with_small_crops(vantage.simclr(32), 2, 14, (0.1, 0.3))
    assert [(branch.query, branch.keys) for branch in run.branches] == [
        (0, (1,)), (1, (0,)), (2, (1,)), (3, (1,)), (2, (0,)), (3, (0,))]  # fmt: skip
    assert all(branch.pool == (0, 1) for branch in run.branches) and isinstance(run.branches[0].memory, InBatch)
    assert sum(branch.weight(0) for branch in run.branches) == pytest.approx(1)


def test_small_views_like_the_whole_one_leave_the_loss() -> None:
    """Where a small view is the whole one, every query asks the same, so the mean over them is the base's loss."""
    base = small_recipes.shrink(vantage.moco_v2(32), None)
    run = vantage.with_small_crops(base, 3, 32, (0.2, 1.0))
    (views, image), *_ = small_recipes.batches(1, 2)
    alone = small_recipes.learner(base)(views, image, 0)
    several = small_recipes.learner(run)([*views, *[views[0]] * 3], image, 0)
    torch.testing.assert_close(several.loss, alone.loss, atol=1e-12, rtol=0)


def test_other_views_and_moving_weights_are_refused() -> None:
    with pytest.raises(UserError, match="cmc makes Channels"):
        vantage.with_small_crops(vantage.cmc(32))
    run = vantage.moco_v2(32)
    with_schedule = replace(run, branches=(replace(run.branches[0], weight=Linear(1.0, 0.5, 10)),))
    with pytest.raises(UserError, match="give a Constant"):
        vantage.with_small_crops(with_schedule)


@pytest.mark.gpu
def test_gpu_and_cpu_make_the_same_small_views() -> None:
    images, views = pictures(16, 64, 64), multi_crop_views(simclr_views(64), 2, 28)
    for cpu, gpu in zip(views.batch(images, generator(1)), views.batch(images.cuda(), generator(1)), strict=True):
        torch.testing.assert_close(gpu.cpu(), cpu, atol=1e-3, rtol=0)  # a ninth of a step of 8 bits
