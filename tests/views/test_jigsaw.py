"""Jigsaws: patches lie in their cells, anywhere in them, in any order; both routes; sizes."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import Tensor

from vantage.errors import UserError
from vantage.recipes import pirl as pirl_recipe
from vantage.training.backbone import evaluation_view
from vantage.views import (
    CIFAR10,
    IMAGENET,
    ColorJitter,
    Grayscale,
    HorizontalFlip,
    Jigsaw,
    RandomResizedCrop,
    ViewMaker,
    WithJigsaw,
    pirl_views,
    pycontrast_jigsaw,
    vissl_jigsaw,
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pictures(count: int, height: int, width: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 256, (count, 3, height, width), dtype=torch.uint8, generator=generator(seed))


def coordinate_images(count: int, side: int) -> Tensor:
    """Images whose pixels show their row, their column and the number of their image."""
    line = torch.arange(float(side))
    rows, columns = line[:, None].expand(side, side), line.expand(side, side)
    return torch.stack([torch.stack([rows, columns, torch.full((side, side), float(n))]) for n in range(count)])


@given(
    cells=st.integers(1, 4),
    cell=st.integers(1, 9),
    rest=st.integers(0, 3),
    less=st.integers(0, 8),
    count=st.integers(0, 4),
    seed=st.integers(0, 99),
)
def test_every_cell_gives_one_patch_out_of_itself(cells: int, cell: int, rest: int, less: int, count: int, seed: int):
    side, patch = cells * cell + min(rest, cells - 1), max(1, cell - less)
    jigsaw = Jigsaw(RandomResizedCrop(side), (), (), cells, patch)
    draws = jigsaw.draw(count, generator(seed))
    images = coordinate_images(count, side) if count else torch.zeros(0, 3, side, side)
    patches = jigsaw.cut(images, draws)
    assert patches.shape == (count, cells**2, 3, patch, patch)
    for image in range(count):
        cells_in_order = []
        for piece in patches[image]:
            top, left = int(piece[0, 0, 0]), int(piece[1, 0, 0])
            assert torch.equal(piece, images[image, :, top : top + patch, left : left + patch])
            row, column = top // cell, left // cell
            assert row == (top + patch - 1) // cell and column == (left + patch - 1) // cell, "it crosses no border"
            cells_in_order.append(row * cells + column)
        assert cells_in_order == draws.cell[image].tolist() and sorted(cells_in_order) == list(range(cells**2))


def test_offsets_and_orders_are_uniform_and_each_its_own():
    """22 places per axis, 0 to 21, for patches of 64 in cells of 85; every cell in every place."""
    jigsaw = pycontrast_jigsaw()
    assert (jigsaw.crop.size, jigsaw.cells, jigsaw.patch) == (255, 3, 64)
    count = 2200
    draws = jigsaw.draw(count, generator(3))
    line = torch.arange(255.0)
    rows = jigsaw.cut(line[:, None].expand(1, 1, 255, 255).expand(count, 1, 255, 255), draws)[:, :, 0, 0, 0].long()
    columns = jigsaw.cut(line.expand(1, 1, 255, 255).expand(count, 1, 255, 255), draws)[:, :, 0, 0, 0].long()
    down, right = rows % 85, columns % 85
    assert down.max() == right.max() == 21 and down.min() == right.min() == 0
    for offset in (down, right):
        assert chisquare(offset.flatten().bincount(minlength=22).numpy()).pvalue > 1e-3
    both = (down * 22 + right).flatten().bincount(minlength=484)
    assert chisquare(both.numpy()).pvalue > 1e-3, "down and right are drawn apart"
    for position in range(9):
        assert chisquare(draws.cell[:, position].bincount(minlength=9).numpy()).pvalue > 1e-4
    following = (draws.cell[:, 0] * 9 + draws.cell[:, 1]).bincount(minlength=81)
    assert chisquare(following[following > 0].numpy()).pvalue > 1e-3 and (following > 0).sum() == 72
    across = (down[:, 0] * 22 + down[:, 1]).bincount(minlength=484)
    assert chisquare(across.numpy()).pvalue > 1e-3, "patches of an image lie apart"


def test_a_view_is_cut_after_the_other_operations():
    images = pictures(3, 36, 36)
    whole = RandomResizedCrop(36, (1.0, 1.0), (1.0, 1.0))
    jigsaw = replace(pycontrast_jigsaw(32), crop=whole, operations=(HorizontalFlip(1.0),))
    source = generator(4)
    whole.draw(3, source), HorizontalFlip(1.0).draw(3, source)
    patches = jigsaw.cut(images.flip(3) / 255, jigsaw.draw(3, source))
    expected = (patches - torch.tensor(IMAGENET.mean)[:, None, None]) / torch.tensor(IMAGENET.std)[:, None, None]
    torch.testing.assert_close(jigsaw.batch(images, generator(4)), expected, atol=1e-5, rtol=0)


def test_patches_can_be_colored_one_by_one():
    images = torch.full((2, 3, 40, 40), 120, dtype=torch.uint8)
    plain, with_colors = (make(32).batch(images, generator()) for make in (pycontrast_jigsaw, vissl_jigsaw))
    assert plain.flatten(2).std(1).max() < 1e-4
    colors = with_colors.mean((3, 4)).flatten(0, 1)
    assert len({tuple(color.tolist()) for color in colors}) == 18


def test_the_two_published_kinds():
    last = CIFAR10.normalize()
    plain, with_colors = pycontrast_jigsaw(224, CIFAR10), vissl_jigsaw(224, CIFAR10)
    assert plain == Jigsaw(RandomResizedCrop(255, (0.6, 1.0)), (HorizontalFlip(0.5),), (last,), 3, 64)
    operations = (ColorJitter(0.4, 0.4, 0.4, 0.2), Grayscale(0.2), HorizontalFlip(0.5), last)
    assert with_colors == Jigsaw(plain.crop, (), operations, 3, 64)


@pytest.mark.parametrize(("size", "cell", "patch"), [(224, 85, 64), (64, 24, 18), (32, 12, 9), (16, 6, 5), (1, 1, 1)])
def test_lengths_follow_the_size(size: int, cell: int, patch: int):
    jigsaw = pycontrast_jigsaw(size)
    assert (jigsaw.crop.size, jigsaw.patch, jigsaw.crop.scale) == (3 * cell, patch, (0.6, 1.0))


@pytest.mark.parametrize("size", [32, 64])
def test_views_have_the_right_shape_type_and_range(size: int):
    views = pirl_views(size)
    assert isinstance(views, ViewMaker) and views.count == 2
    whole, patches = views.batch(pictures(5, size + 8, size), generator())
    side = views.jigsaw.patch
    assert whole.shape == (5, 3, size, size) and patches.shape == (5, 9, 3, side, side)
    assert patches.dtype == torch.float32 and not patches.requires_grad
    pixels = patches * torch.tensor(IMAGENET.std)[:, None, None] + torch.tensor(IMAGENET.mean)[:, None, None]
    assert pixels.min() >= -1e-5 and pixels.max() <= 1 + 1e-5
    (only,) = views.views.batch(pictures(5, size + 8, size), generator())
    assert torch.equal(only, whole), "the other views are those of their own maker"


def test_equal_generators_make_equal_views_and_others_do_not():
    images, views = pictures(6, 40, 32), pirl_views(32)
    first, again, other = (views.batch(images, generator(seed))[1] for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_an_image_does_not_change_the_patches_of_others():
    images, jigsaw = pictures(6, 40, 40), pycontrast_jigsaw(32)
    other_images = images.clone()
    other_images[2] = 255 - other_images[2]
    result, other = (jigsaw.batch(each, generator(1)) for each in (images, other_images))
    keep = torch.arange(6) != 2
    assert torch.equal(result[keep], other[keep]) and not torch.equal(result[2], other[2])


def test_crop_then_finish_is_the_batch_route_to_a_gray_level():
    jigsaw, images = pycontrast_jigsaw(32), pictures(6, 50, 40)
    source = generator(3)
    boxes = torch.stack(jigsaw.crop.boxes(jigsaw.crop.draw(6, source), 50, 40), 1).tolist()
    from torchvision.transforms.v2.functional import resized_crop

    crops = torch.stack([resized_crop(i, *box, [36, 36], antialias=True) for i, box in zip(images, boxes, strict=True)])
    patches = jigsaw.finish(crops, source)  # the generator stands where the batch route's crop left it
    assert (patches - jigsaw.batch(images, generator(3))).abs().max() <= 1.05 / 255 / min(IMAGENET.std)


def test_workers_crop_every_view_and_the_device_finishes():
    views = pirl_views(64)
    crops = views.crop(pictures(1, 100, 80)[0], generator(1))
    assert [crop.shape for crop in crops] == [(3, 64, 64), (3, 72, 72)]
    outputs = views.finish(tuple(crop[None] for crop in crops), generator(2))
    assert [view.shape for view in outputs] == [(1, 3, 64, 64), (1, 9, 3, 18, 18)]
    with pytest.raises(UserError, match="1 views need 1"):
        views.finish((*(crop[None] for crop in crops), crops[0][None]), generator())


def test_views_under_autocast_keep_their_precision():
    images, jigsaw = pictures(4, 32, 32), vissl_jigsaw(32)
    expected = jigsaw.batch(images, generator(1))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(jigsaw.batch(images, generator(1)), expected)


def test_evaluations_see_whole_images_of_the_views_size():
    for size in (32, 224):
        assert evaluation_view(pirl_recipe(size)).size == size


def test_patches_larger_than_their_cells_are_refused():
    for cells, patch in ((3, 13), (3, 0), (0, 1)):
        with pytest.raises(UserError, match="larger crop"):
            Jigsaw(RandomResizedCrop(36), (), (), cells, patch)


def test_jigsaws_are_values():
    assert pirl_views(32) == pirl_views(32) != pirl_views(64) and hash(pirl_views(32)) == hash(pirl_views(32))
    assert isinstance(pirl_views(32), WithJigsaw) and pirl_views(224).views == pirl_views(224, IMAGENET).views


@pytest.mark.gpu
@pytest.mark.parametrize("size", [32, 224])
def test_gpu_and_cpu_make_the_same_patches(size: int):
    images, jigsaw = pictures(16, size, size), vissl_jigsaw(size)
    cpu, gpu = jigsaw.batch(images, generator(1)), jigsaw.batch(images.cuda(), generator(1))
    torch.testing.assert_close(gpu.cpu(), cpu, atol=1e-3, rtol=0)  # a ninth of a step of 8 bits
