"""One image resized, of any size to any size: as torchvision resizes it."""

import itertools

import pytest
import torch
from torchvision.transforms.v2 import functional

from vantage.data.resize import resize
from vantage.views.colors.statistics import Statistics
from vantage.views.evaluation import EvaluationView, Straight
from vantage.views.operations.crops import SquareCrop
from vantage.views.operations.resampling import interpolation, resample


@pytest.mark.parametrize("image", [*itertools.product((1, 2, 40), repeat=2)])
@pytest.mark.parametrize("sides", [*itertools.product((1, 2, 5), repeat=2)])
def test_whole_levels_are_those_of_torchvision(image: tuple[int, int], sides: tuple[int, int]) -> None:
    pixels = torch.randint(0, 256, (3, *image), dtype=torch.uint8)
    result = resize(pixels, list(sides))
    assert result.shape == (3, *sides) and result.dtype == torch.uint8
    lines = (
        interpolation(torch.zeros(1), torch.tensor([float(source)]), source, target)
        for source, target in zip(image, sides, strict=True)
    )
    exact = resample(pixels[None] * 1.0, next(lines), next(lines).mT)[0]  # torch's own floats are wrong for a column
    assert (result - exact).abs().max() < 1.5  # each side is rounded
    if sides[1] > 1:  # torch itself is wrong for a column on some processors, and fails for a pixel
        assert torch.equal(result, functional.resize(pixels, list(sides), antialias=True))


@pytest.mark.parametrize("side", [2, 3, 40])
def test_an_image_may_become_one_pixel(side: int) -> None:
    pixels = torch.randint(0, 256, (3, side, side), dtype=torch.uint8)
    view = EvaluationView(1, 1, Statistics((0.5,) * 3, (0.5,) * 3))
    mean = pixels.float().mean((1, 2))
    for pixel in (
        view.crop(pixels),
        Straight(view).crop(pixels),
        SquareCrop(1, 1).crop_one(pixels, torch.Generator()),
    ):
        assert pixel.shape == (3, 1, 1)
        if side == 2:
            assert (pixel[:, 0, 0].float() - mean).abs().max() <= 1
