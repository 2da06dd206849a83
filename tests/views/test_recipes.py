"""The recipes against the papers' numbers and orders; the views without chance against torchvision."""

import inspect

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchvision.transforms.v2 import functional

from vantage.errors import UserError
from vantage.views import (
    CIFAR10,
    IMAGENET,
    ColorJitter,
    EvaluationView,
    GaussianBlur,
    Grayscale,
    HorizontalFlip,
    RandAugment,
    RandomResizedCrop,
    Views,
    infomin_views,
    interclr_views,
    moco_v2_views,
    npid_views,
    pycontrast_a_views,
    simclr_views,
)

LAST = IMAGENET.normalize()


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("views", "least", "operations"),
    [
        (npid_views(), 0.2, (Grayscale(0.2), ColorJitter(0.4, 0.4, 0.4, 0.4), HorizontalFlip(), LAST)),
        (pycontrast_a_views(), 0.2, (HorizontalFlip(), ColorJitter(0.4, 0.4, 0.4, 0.4), Grayscale(0.2), LAST)),
        (pycontrast_a_views(smallest_area=0.08), 0.08,
         (HorizontalFlip(), ColorJitter(0.4, 0.4, 0.4, 0.4), Grayscale(0.2), LAST)),
        (moco_v2_views(), 0.2,
         (ColorJitter(0.4, 0.4, 0.4, 0.1, 0.8), Grayscale(0.2), GaussianBlur((0.1, 2.0), 0.5), HorizontalFlip(), LAST)),
        (interclr_views(count=2), 0.2,
         (HorizontalFlip(), ColorJitter(0.0, 0.0, 1.0, 0.5), Grayscale(0.2), GaussianBlur((0.1, 2.0), 0.5), LAST)),
        (simclr_views(), 0.08,
         (HorizontalFlip(), ColorJitter(0.8, 0.8, 0.8, 0.2, 0.8), Grayscale(0.2), GaussianBlur((0.1, 2.0), 0.5), LAST)),
        (infomin_views(), 0.2,
         (HorizontalFlip(), ColorJitter(0.8, 0.8, 0.8, 0.2, 0.8), GaussianBlur((0.1, 2.0), 0.5, 5.5), RandAugment(),
          Grayscale(0.2), LAST)),
        (simclr_views(strength=0.5), 0.08,
         (HorizontalFlip(), ColorJitter(0.4, 0.4, 0.4, 0.1, 0.8), Grayscale(0.2), GaussianBlur((0.1, 2.0), 0.5), LAST)),
    ],
)  # fmt: skip
def test_recipes_at_224_are_the_papers(views: Views, least: float, operations: tuple) -> None:
    assert views.count == 2 and views.views[0] == views.views[1]
    assert views.views[0].crop == RandomResizedCrop(224, (least, 1.0), (3 / 4, 4 / 3))
    assert views.views[0].operations == operations


def test_small_images_have_no_blur_then_a_narrow_one_and_larger_crops() -> None:
    for recipe in (moco_v2_views, simclr_views):
        tiny, small = recipe(32, 1, CIFAR10).views[0], recipe(64, 1).views[0]
        assert not any(isinstance(operation, GaussianBlur) for operation in tiny.operations)
        assert tiny.operations[-1] == CIFAR10.normalize()
        (blur,) = [operation for operation in small.operations if isinstance(operation, GaussianBlur)]
        assert blur.sigma == pytest.approx((0.1 * 64 / 224, 2 * 64 / 224)) and blur.radius == 2
        assert tiny.crop.scale == small.crop.scale == (0.2, 1.0)
    assert simclr_views(96).views[0].crop.scale == (0.08, 1.0)


def test_recipes_are_values() -> None:
    assert (
        moco_v2_views(32) == moco_v2_views(32)
        and hash(moco_v2_views(32)) == hash(moco_v2_views(32))
        and moco_v2_views(32) != moco_v2_views(64)
    )
    for recipe in (npid_views, pycontrast_a_views, moco_v2_views, interclr_views, simclr_views, infomin_views):
        assert recipe.__doc__ and "arXiv" in recipe.__doc__
        assert list(inspect.signature(recipe).parameters)[:3] == ["size", "count", "statistics"]


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(UserError, match="views"):
        moco_v2_views(count=0)
    with pytest.raises(UserError, match="strength"):
        simclr_views(strength=3.0)
    with pytest.raises(UserError, match="infomin's strength"):
        infomin_views(strength=-1.0)
    with pytest.raises(UserError, match="central crop of 224"):
        EvaluationView(224, 200, IMAGENET)


@given(height=st.integers(1, 90), width=st.integers(1, 90), size=st.integers(1, 40), more=st.integers(0, 20))
def test_evaluation_is_torchvisions_resize_and_center(height: int, width: int, size: int, more: int) -> None:
    image = torch.randint(0, 256, (3, height, width), dtype=torch.uint8, generator=generator(height * 91 + width))
    view = EvaluationView(size, size + more, IMAGENET)
    resized_image = functional.resize(image, [size + more], antialias=True)
    assert torch.equal(view.crop(image), functional.center_crop(resized_image, [size, size]))
    exact = functional.center_crop(functional.resize(image / 255, [size + more], antialias=True), [size, size])
    expected = functional.normalize(exact, list(IMAGENET.mean), list(IMAGENET.std))
    torch.testing.assert_close(view.batch(image[None])[0], expected, atol=2e-4, rtol=0)
    view_of_image = view.finish(view.crop(image)[None])[0]
    assert (view_of_image - expected).abs().max() <= 1.05 / 255 / min(IMAGENET.std)


def test_evaluation_of_images_of_the_right_size_is_exact_by_both_routes() -> None:
    images = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8)
    view = EvaluationView(32, 32, CIFAR10)
    crops = torch.stack([view.crop(image) for image in images])
    assert torch.equal(crops, images) and torch.equal(view.finish(crops), view.batch(images))
