"""Low and high frequencies of one image."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close
from torchvision.transforms.v2 import functional

from vantage.errors import UserError
from vantage.views import Frequencies, frequency_views


def images(count: int = 4, side: int = 40) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(sigma=st.floats(0.05, 3.0))
def test_27_both_views_add_up_to_the_image(sigma: float):
    views = frequency_views(24, sigma)
    low, high = views.batch(images(), generator(1))
    assert views.count == 2
    assert_close(low + high, views.view.batch(images(), generator(1)), rtol=0, atol=1e-5)


def test_27_without_blur_nothing_is_left_for_the_second():
    _, high = frequency_views(24, 0.05).batch(images(), generator(1))
    assert high.abs().max() < 1e-5


def test_27_an_even_image_has_no_high_frequencies():
    _, high = frequency_views(24, 1.0).batch(torch.full((2, 3, 30, 30), 77, dtype=torch.uint8), generator(1))
    assert high.abs().max() < 1e-5


def test_the_blur_is_torchvisions():
    parts = frequency_views(32, 1.0).split(torch.rand(2, 3, 32, 32, generator=generator(3)))
    whole = parts[0] + parts[1]
    assert_close(parts[0], functional.gaussian_blur(whole, [9, 9], [1.0, 1.0]), rtol=0, atol=3e-6)


def test_crops_of_workers_become_the_same_views():
    views = frequency_views(24)
    joint = torch.stack([views.crop(image, generator(n))[0] for n, image in enumerate(images())])
    low, high = views.finish((joint,), generator(9))
    assert_close(low + high, views.view.finish(joint, generator(9)), rtol=0, atol=1e-5)
    with pytest.raises(UserError, match="one batch of crops"):
        views.finish((joint, joint), generator(9))
    with pytest.raises(UserError, match="above 0"):
        Frequencies(views.view, 0.0)
