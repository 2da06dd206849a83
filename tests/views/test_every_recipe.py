"""Every recipe's views, of random images: shape, type, range, and each image by itself.

Parameters are drawn for a batch as a whole, one row for each place in it, so independence means: with one generator,
the view of the image in a place does not change when the images in all other places do.
"""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import vantage
from vantage.composition.fitting import parts_of
from vantage.views import (
    Channels,
    Frequencies,
    InSpace,
    Normalize,
    Patches,
    WithJigsaw,
    cmc_views,
    frequency_views,
    infomin_views,
    interclr_views,
    moco_v2_views,
    multi_crop_views,
    npid_views,
    pirl_views,
    pycontrast_a_views,
    pycontrast_c_views,
    simclr_views,
)
from vantage.views.colors import spaces

SPACES = [getattr(spaces, name)() for name in ("RGB", "Lab", "YCbCr", "YDbDr", "YIQ", "YUV", "XYZ", "HSV")]
MAKERS: dict[str, Any] = {
    **{
        recipe.__name__: recipe
        for recipe in (
            npid_views,
            pycontrast_a_views,
            moco_v2_views,
            simclr_views,
            interclr_views,
            infomin_views,
            pirl_views,
        )
    },
    **{f"cmc {type(space).__name__}": lambda size, space=space: cmc_views(size, space) for space in SPACES},
    "pycontrast_c": pycontrast_c_views,
    "frequencies": frequency_views,
    "multi_crop": lambda size: multi_crop_views(simclr_views(size), 2, 7, (0.1, 0.3)),
    "patches": lambda size: Patches(size, 3),
}
"""What makes views of a size."""


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some_images(count: int, height: int, width: int, gray: bool, seed: int) -> Tensor:
    images = torch.randint(
        0, 256, (count, 1 if gray else 3, height, width), dtype=torch.uint8, generator=generator(seed)
    )
    return images.expand(-1, 3, -1, -1).contiguous()


def shapes(maker: Any, count: int) -> list[tuple[int, ...]]:
    """What the views of `count` images must be."""
    match maker:
        case WithJigsaw():
            n, p = maker.jigsaw.cells**2, maker.jigsaw.patch
            return [*shapes(maker.views, count), (count, n, 3, p, p)]
        case Channels():
            s = maker.view.crop.size
            return [(count, len(part), s, s) for part in maker.channels]
        case Frequencies():
            return [(count, 3, maker.view.crop.size, maker.view.crop.size)] * 2
        case Patches():
            return [(count, 3, maker.size, maker.size)] * 2
        case _:
            return [(count, 3, view.crop.size, view.crop.size) for view in maker.views]


def span(maker: Any) -> float:
    """How far from 0 a normalized pixel can be, seen on a grid of all colors; hues between its points reach higher."""
    normalize = next(part for part in parts_of(maker) if isinstance(part, Normalize))
    mean, std = (torch.tensor(part) for part in (normalize.mean, normalize.std))
    colors = torch.cartesian_prod(*[torch.linspace(0, 1, 17)] * 3).T.reshape(1, 3, 17, -1)
    for part in parts_of(maker):
        if isinstance(part, InSpace):
            colors = part.space.convert(colors)
    return float(((colors[0].flatten(1) - mean[:, None]) / std[:, None]).abs().max()) * 1.05


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=6)
@given(
    side=st.integers(1, 60), other=st.integers(1, 60), size=st.sampled_from([4, 9, 32, 40]), count=st.integers(1, 5),
    gray=st.booleans(), seed=st.integers(0, 2**31),
)  # fmt: skip
def test_views_keep_shape_type_and_range_and_each_image_is_by_itself(
    name: str, side: int, other: int, size: int, count: int, gray: bool, seed: int
) -> None:
    maker = MAKERS[name](size)
    least = size + 3 if name == "patches" else 1
    images = some_images(count, max(side, least), max(other, least), gray, seed)
    batch = maker.batch(images, generator(seed))
    assert [tuple(view.shape) for view in batch] == shapes(maker, count) and len(batch) == maker.count
    for view in batch:
        assert view.dtype == torch.float32 and view.isfinite().all() and not view.requires_grad
        # High frequencies are differences of two pixels, so they may be twice as far from 0.
        assert view.abs().max() <= span(maker) * (2 if name == "frequencies" else 1) + 1e-3
    position = seed % count
    others = some_images(count, *images.shape[2:], not gray, seed + 1)
    others[position] = images[position]
    for view, beside_others in zip(batch, maker.batch(others, generator(seed)), strict=True):
        torch.testing.assert_close(beside_others[position], view[position], atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=4)
@given(side=st.integers(1, 60), other=st.integers(1, 60), gray=st.booleans(), seed=st.integers(0, 2**31))
def test_crops_of_files_become_the_same_kind_of_views(name: str, side: int, other: int, gray: bool, seed: int) -> None:
    maker, least = MAKERS[name](9), 12 if name == "patches" else 1
    files = [some_images(1, max(a, least), max(b, least), gray, seed)[0] for a, b in ((side, other), (other, side))]
    crops = [maker.crop(file, generator(seed + number)) for number, file in enumerate(files)]
    assert all(part.dtype == torch.uint8 for some in crops for part in some)
    crops_of_view = tuple(torch.stack(part) for part in zip(*crops, strict=True))
    batch = maker.finish(crops_of_view, generator(seed))
    assert [tuple(view.shape) for view in batch] == shapes(maker, 2)
    assert all(view.isfinite().all() and view.abs().max() <= 2 * span(maker) + 1e-3 for view in batch)
    assert [torch.equal(a, b) for a, b in zip(batch, maker.finish(crops_of_view, generator(seed)), strict=True)] == [
        True
    ] * maker.count


@pytest.mark.parametrize("recipe", vantage.RECIPES, ids=lambda recipe: recipe.__name__)
def test_the_views_of_every_method_are_such_views(recipe: Any) -> None:
    """Methods share view makers of these kinds; whatever a method adds is tried here."""
    maker = recipe(32).views
    batch = maker.batch(some_images(4, 45, 33, False, 1), generator(1))
    assert [tuple(view.shape) for view in batch] == shapes(maker, 4)
    assert all(view.isfinite().all() and view.abs().max() <= span(maker) + 1e-3 for view in batch)


@pytest.mark.gpu
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("size", [32, 96])
def test_gpu_and_cpu_make_the_same_views_of_every_kind(name: str, size: int) -> None:
    maker, images = MAKERS[name](size), some_images(24, 110, 120, False, 5)
    cpu, gpu = maker.batch(images, generator(1)), maker.batch(images.cuda(), generator(1))
    for ours, theirs in zip(cpu, gpu, strict=True):
        # Where pixels are rounded to gray levels (RandAugment), or a hue jumps from 0 to 1, rounding may tip a few.
        assert ((ours - theirs.cpu()).abs() > 1e-3).double().mean() < 0.002
