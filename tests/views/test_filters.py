"""Blur against torchvision's and PIL's."""

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFilter
from scipy.stats import ks_2samp
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional

from vantage.errors import UserError
from vantage.views import GaussianBlur
from vantage.views.operations.filters import BLOCK, BlurDraw, gaussian


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def torchvision_blur(images: torch.Tensor, draws: BlurDraw, radius: int) -> torch.Tensor:
    outputs = [
        functional.gaussian_blur(image, [2 * radius + 1] * 2, [float(sigma)] * 2) if on else image
        for image, on, sigma in zip(images, draws.on, draws.sigma, strict=True)
    ]
    return torch.stack(outputs)


# Lines of one block, of whole blocks, and of blocks and a bit.
@pytest.mark.parametrize(("height", "width"), [(7, 7), (32, 20), (64, 64), (2 * BLOCK + 1, BLOCK + 1), (112, 130)])
def test_blur_equals_torchvision(height: int, width: int) -> None:
    operation = GaussianBlur((0.1, 2.0), 0.6)
    images = torch.rand(6, 3, height, width)
    before = images.clone()
    draws = operation.draw(6, generator(2))
    result = operation.apply(images, draws)
    torch.testing.assert_close(result, torchvision_blur(images, draws, 6), atol=3e-6, rtol=0)
    assert operation.radius == 6 and 0 < draws.on.sum() < 6 and torch.equal(images, before)
    assert torch.equal(result[~draws.on], images[~draws.on])


@given(height=st.integers(1, 12), width=st.integers(1, 12))
def test_images_smaller_than_the_kernel_are_mirrored_as_often_as_needed(height: int, width: int) -> None:
    operation = GaussianBlur((2.0, 2.0), 1.0)
    images = torch.rand(2, 3, height, width, generator=generator(height * 13 + width))
    result = operation.apply(images, operation.draw(2, generator()))
    mirrored = numpy.pad(images.numpy(), ((0, 0), (0, 0), (6, 6), (6, 6)), mode="reflect")
    whole = functional.gaussian_blur(torch.from_numpy(mirrored), [13, 13], [2.0, 2.0])[:, :, 6:-6, 6:-6]
    torch.testing.assert_close(result, whole, atol=3e-6, rtol=0)
    assert result.min() >= 0 and result.max() <= 1 + 1e-6


def test_blur_is_near_pils_gaussian_on_a_photo_like_image() -> None:
    noise = functional.gaussian_blur(torch.rand(3, 96, 96, generator=generator()), [9, 9], [2.0, 2.0])
    pixels = ((noise - noise.amin()) / (noise.amax() - noise.amin()) * 255).byte()
    picture = Image.fromarray(pixels.permute(1, 2, 0).numpy())
    for sigma in (0.5, 1.0, 2.0):
        theirs = torch.from_numpy(numpy.array(picture.filter(ImageFilter.GaussianBlur(sigma)))).permute(2, 0, 1)
        ours = GaussianBlur().apply(pixels[None] / 255, BlurDraw(torch.tensor([True]), torch.tensor([sigma])))[0] * 255
        difference = (ours - theirs).abs()
        assert difference.mean() < 1.5, sigma


def test_no_chosen_image_is_no_work() -> None:
    images = torch.rand(2, 3, 8, 8)
    assert torch.equal(
        GaussianBlur((0.1, 2.0), 0.0).apply(images, GaussianBlur(probability=0.0).draw(2, generator())), images
    )


def test_sigma_is_distributed_as_torchvisions() -> None:
    theirs = v2.GaussianBlur(23, (0.1, 2.0))
    expected = [theirs.make_params([])["sigma"][0] for _ in range(3000)]
    draws = GaussianBlur((0.1, 2.0), 0.5).draw(3000, generator(5))
    assert ks_2samp(draws.sigma.numpy(), expected).pvalue > 1e-3
    assert abs(draws.on.float().mean() - 0.5) < 0.03


def test_impossible_blurs_are_refused() -> None:
    with pytest.raises(UserError, match="sigma"):
        GaussianBlur((0.0, 1.0))
    with pytest.raises(UserError, match="sigma"):
        GaussianBlur((2.0, 1.0))
    with pytest.raises(UserError, match="probability"):
        GaussianBlur(probability=2.0)


def test_no_tap_is_so_small_that_a_processor_is_slow_over_it() -> None:
    for dtype in (torch.float32, torch.float64):
        kernel = gaussian(torch.linspace(0.05, 3.0, 400, dtype=dtype), 9)
        assert kernel[kernel > 0].min() > torch.finfo(dtype).eps ** 2 / 2 and kernel.dtype == dtype
        torch.testing.assert_close(kernel.sum(1), torch.ones(400, dtype=dtype))
