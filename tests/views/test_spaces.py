"""Color spaces against scikit-image, and what they make of gray."""

import numpy as np
import pytest
import torch
from skimage import color
from torch.testing import assert_close

from vantage.errors import UserError
from vantage.views import HSV, RGB, XYZ, YIQ, YUV, InSpace, Lab, Pick, YCbCr, YDbDr

SPACES = [
    (Lab(), color.rgb2lab, 2e-3),
    (YCbCr(), color.rgb2ycbcr, 1e-4),
    (YDbDr(), color.rgb2ydbdr, 1e-6),
    (YIQ(), color.rgb2yiq, 1e-6),
    (YUV(), color.rgb2yuv, 1e-6),
    (XYZ(), color.rgb2xyz, 1e-6),
    (HSV(), color.rgb2hsv, 1e-5),
]


def pixels(count: int = 3, side: int = 17) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    some = torch.rand(count, 3, side, side, generator=generator)
    some[0, :, 0, 0], some[0, :, 0, 1], some[0, :, 0, 2] = 0.0, 1.0, torch.tensor([0.0, 0.0, 1.0])
    some[1] *= 0.02  # where both curves of Lab are straight lines
    return some


@pytest.mark.parametrize("space, theirs, tolerance", SPACES, ids=lambda value: type(value).__name__)
def test_it_is_scikit_images(space, theirs, tolerance: float):
    images = pixels()
    expected = theirs(images.double().movedim(1, -1).numpy())
    assert_close(space.convert(images), torch.from_numpy(expected).movedim(-1, 1).float(), rtol=1e-5, atol=tolerance)
    exact = space.convert(images.double())
    assert_close(
        exact, torch.from_numpy(expected).movedim(-1, 1), rtol=1e-6, atol=1e-3 if isinstance(space, Lab) else 1e-9
    )


@pytest.mark.parametrize("space", [Lab(), YCbCr(), YDbDr(), YIQ(), YUV()], ids=lambda space: type(space).__name__)
def test_29_gray_has_no_color(space):
    gray = torch.linspace(0, 1, 64, dtype=torch.float64).reshape(1, 1, 8, 8).expand(2, 3, 8, 8)
    outputs = space.convert(gray)
    middle = 128.0 if isinstance(space, YCbCr) else 0.0
    assert (outputs[:, 1:] - middle).abs().max() < 0.02
    assert (outputs[:, 0].flatten(1).diff(dim=1) > 0).all(), "lightness rises with gray"


def test_a_gray_has_no_hue_and_no_saturation():
    outputs = HSV().convert(torch.full((1, 3, 2, 2), 0.3))
    assert_close(outputs[0, :, 0, 0], torch.tensor([0.0, 0.0, 0.3]))
    assert torch.equal(HSV().convert(torch.zeros(1, 3, 2, 2)), torch.zeros(1, 3, 2, 2))


def test_29_colors_are_recovered():
    """Converted by ours and back by scikit-image, up to rounding."""
    images = pixels(2).double()
    inverse = {YIQ(): color.yiq2rgb, YUV(): color.yuv2rgb, YDbDr(): color.ydbdr2rgb, HSV(): color.hsv2rgb}
    for space, theirs in inverse.items():
        again = theirs(space.convert(images).movedim(1, -1).numpy())
        assert_close(torch.from_numpy(again).movedim(-1, 1), images, rtol=0, atol=1e-6)


def test_its_channels_are_normalized_by_its_own_statistics():
    """CMC's constants bring each channel of Lab to [-1.1, 1.1]."""
    images = pixels()
    outputs = InSpace(Lab()).apply(images, torch.empty(3, 0))
    assert torch.equal(outputs, Lab().convert(images))
    even = Lab().statistics.normalize().apply(outputs, torch.empty(3, 0))
    assert even.abs().max() < 1.2 and even[:, 0].min() >= -1.001
    assert torch.equal(RGB().convert(images), images)


def test_channels_are_picked():
    images = pixels()
    assert torch.equal(Pick((2, 1)).apply(images, torch.empty(3, 0)), images[:, [2, 1]])
    for wrong in ((), (3,), (-1,)):
        with pytest.raises(UserError, match="channels 0, 1 and 2"):
            Pick(wrong)
    assert np.isfinite(images.numpy()).all()
