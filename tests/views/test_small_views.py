"""Views made small directly: the same random numbers as at full size, and the same pixels up to resampling."""

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from vantage.views import (
    IMAGENET,
    Augmentation,
    ColorJitter,
    GaussianBlur,
    Grayscale,
    HorizontalFlip,
    Lighting,
    Operation,
    ProgressiveResizing,
    RandAugment,
    RandomResizedCrop,
    SquareCrop,
    Views,
    cmc_views,
    infomin_views,
    moco_v2_views,
    multi_crop_views,
    npid_views,
    pycontrast_a_views,
    simclr_views,
)
from vantage.views.operations.share import ShareGenerator
from vantage.views.operations.shrink import Shrink

GROWING = ProgressiveResizing((16, 24), (0.5, 0.75))
ANY_SIZE = [HorizontalFlip(), ColorJitter(0.8, 0.8, 0.8, 0.2, 0.8), Grayscale(0.4), Lighting(), IMAGENET.normalize()]


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def smooth(count: int, side: int) -> Tensor:
    """Images of at most one wave down and one across in every channel, in whole gray levels."""
    down, across, down_shift, across_shift = torch.rand(4, count, 3, 1, 1, generator=generator(0))
    place = torch.arange(side) / side
    waves = (2 * math.pi * (down * place[:, None] + down_shift)).cos()
    waves = waves + (2 * math.pi * (across * place + across_shift)).cos()
    return (255 * (0.5 + 0.2 * waves)).round().byte()


def in_both_ways(views: Views, images: Any, route: str, share: float) -> tuple[Tensor, Tensor]:
    """Views that were shrunk, and views made small."""
    shrunk = [GROWING(view, share) for view in getattr(views, route)(images, generator())]
    return torch.stack(shrunk), torch.stack(getattr(GROWING.maker(views, share), route)(images, generator()))


@pytest.mark.parametrize("recipe", [simclr_views, moco_v2_views, npid_views, pycontrast_a_views])
@pytest.mark.parametrize("side", [32, 100])
@pytest.mark.parametrize("share", [0.0, 0.6])
def test_small_views_differ_from_shrunk_ones_by_resampling_alone(recipe, side: int, share: float) -> None:
    """On average by less than .4 gray levels of 255 (measured: .07 to .33), and nowhere by more than 20 (4 to 16, where
    hues turn or colors are clipped)."""
    views, images = recipe(32), smooth(64, side)
    cropped = [views.crop(image, generator(number)) for number, image in enumerate(images)]
    crops = tuple(map(torch.stack, zip(*cropped, strict=True)))
    for route, pixels in (("batch", images), ("finish", crops)):
        shrunk, direct = in_both_ways(views, pixels, route, share)
        assert direct.shape == shrunk.shape == (2, 64, 3, GROWING.side(share), GROWING.side(share))
        levels = 255 * min(IMAGENET.std) * (direct - shrunk).abs()
        assert 0 < levels.mean() < 0.4 and levels.max() < 20


@pytest.mark.parametrize("recipe", [simclr_views, moco_v2_views, multi_crop_views])
def test_as_many_random_numbers_are_drawn_at_every_size(recipe) -> None:
    views = recipe(simclr_views(32), 2, 20) if recipe is multi_crop_views else recipe(32)
    states = []
    for share in (0.0, 0.6, 1.0):
        source = generator()
        GROWING.maker(views, share).batch(smooth(5, 40), source)
        states.append(source.get_state())
    assert torch.equal(states[0], states[1]) and torch.equal(states[1], states[2])


def test_a_share_of_a_joint_batch_is_what_one_process_makes_of_it() -> None:
    images, maker = smooth(12, 40), GROWING.maker(simclr_views(32), 0.0)
    whole, parts = torch.stack(maker.batch(images, generator())), []
    for start in (0, 4, 8):
        source = ShareGenerator()
        source.manual_seed(1)
        source.share = (start, start + 4, 12)
        parts.append(torch.stack(maker.batch(images[start : start + 4], source)))
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=0, atol=1e-5)


@pytest.mark.parametrize("operation", ANY_SIZE, ids=lambda operation: type(operation).__name__)
def test_operations_for_any_size_may_see_scaled_images(operation: Any) -> None:
    assert operation.any_size and operation == type(operation)(**vars(operation))  # a fact, not a setting
    images, shrink = smooth(40, 32) / 255, Shrink(16)
    draws, none = operation.draw(40, generator()), torch.empty(40, 0)
    early, late = operation.apply(shrink.apply(images, none), draws), shrink.apply(operation.apply(images, draws), none)
    assert (early - late).abs().mean() < 0.002


def test_scaling_down_is_that_of_progressive_resizing() -> None:
    images = torch.rand(3, 3, 32, 32)
    torch.testing.assert_close(Shrink(24).apply(images, torch.empty(3, 0)), GROWING(images, 0.6), rtol=0, atol=1e-5)


@dataclass(frozen=True)
class Newcomer:
    """An operation that says nothing about sizes."""

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        return torch.empty(count, 0)

    def apply(self, images: Tensor, parameters: Tensor) -> Tensor:
        return images


@pytest.mark.parametrize("operation", [GaussianBlur(), RandAugment(), Newcomer()])
def test_other_operations_see_full_size(operation: Operation) -> None:
    views = Views((Augmentation(RandomResizedCrop(32), (HorizontalFlip(), operation)),))
    assert GROWING.maker(views, 0.0) == views


def test_other_views_are_made_at_full_size() -> None:
    plain, normalize = simclr_views(32), (IMAGENET.normalize(),)
    square, small = (Augmentation(crop, normalize) for crop in (SquareCrop(32, 40), RandomResizedCrop(12)))
    for views in (moco_v2_views(64), infomin_views(32), cmc_views(32), Views((square, small))):
        assert GROWING.maker(views, 0.0) == views
    mixed = GROWING.maker(Views((square, plain.views[0], small)), 0.0)
    assert isinstance(mixed, Views)
    assert mixed.views == (square, replace(plain.views[0], crop=replace(plain.views[0].crop, size=16)), small)  # pyright: ignore
    assert GROWING.maker(plain, 0.75) is plain
