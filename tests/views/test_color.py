"""Color operations against torchvision's functional ones; the law of the parameters against torchvision's sampler."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pretend_gpu import Pretend, Pretended, values
from scipy.stats import chisquare, ks_2samp
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional

from vantage.errors import UserError
from vantage.views import CIFAR10, IMAGENET, STL10, ColorJitter, Grayscale, Normalize
from vantage.views.operations.color import HUE, JitterDraw, gray, turn_hue

CHANGES = (
    functional.adjust_brightness,
    functional.adjust_contrast,
    functional.adjust_saturation,
    functional.adjust_hue,
)
JITTER = ColorJitter(0.8, 0.8, 0.8, 0.5, 0.7)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def torchvision_jitter(image: torch.Tensor, draws: JitterDraw, row: int) -> torch.Tensor:
    if not draws.on[row]:
        return image
    amounts = [*draws.factor[row].tolist(), float(draws.turn[row])]
    for change in draws.order[row].tolist():
        image = CHANGES[change](image, amounts[change])
    return image


@given(height=st.integers(1, 40), width=st.integers(1, 40), seed=st.integers(0, 999))
def test_jitter_equals_torchvision_with_the_same_parameters(height: int, width: int, seed: int) -> None:
    images = torch.rand(8, 3, height, width, generator=generator(seed))
    before = images.clone()
    draws = JITTER.draw(8, generator(seed))
    result = JITTER.apply(images, draws)
    expected = torch.stack([torchvision_jitter(image, draws, row) for row, image in enumerate(images)])
    # A change of hue after others can magnify rounding in nearly gray pixels, never past this.
    torch.testing.assert_close(result, expected, atol=2e-5, rtol=0)
    assert torch.equal(images, before)


def test_every_order_equals_torchvision() -> None:
    orders = torch.tensor(list(itertools.permutations(range(4))))
    images = torch.rand(24, 3, 9, 7)
    draws = ColorJitter(0.8, 0.8, 0.8, 0.5).draw(24, generator())._replace(order=orders)
    result = JITTER.apply(images, draws)
    expected = torch.stack([torchvision_jitter(image, draws, row) for row, image in enumerate(images)])
    torch.testing.assert_close(result, expected, atol=2e-5, rtol=0)
    assert result.min() >= -1e-6 and result.max() <= 1 + 1e-6


def test_on_a_device_every_order_is_what_it_is_on_the_cpu() -> None:
    """There the hue of all images is rotated at once."""
    orders = torch.tensor(list(itertools.permutations(range(4))))
    images = torch.rand(24, 3, 9, 7)
    draws = JITTER.draw(24, generator())._replace(order=orders)
    for jitter in (JITTER, ColorJitter(0.8, 0.8, 0.8, 0.0)):
        with Pretend():
            result = values(jitter.apply(Pretended(images), draws))
        torch.testing.assert_close(result, jitter.apply(images, draws), atol=1e-6, rtol=0)


def test_the_hue_of_every_kind_of_color_equals_torchvision() -> None:
    levels = torch.tensor([0.0, 0.2, 0.5, 0.8, 1.0])
    colors = torch.cartesian_prod(levels, levels, levels).T.reshape(1, 3, 5, 25)  # grays, ties, pure and dark ones
    turns = torch.linspace(-0.5, 0.5, 41)
    result = turn_hue(colors.expand(41, -1, -1, -1).contiguous(), turns)
    expected = torch.cat([functional.adjust_hue(colors, float(turn)) for turn in turns])
    torch.testing.assert_close(result, expected, atol=2e-6, rtol=0)


def test_a_hue_setting_of_zero_leaves_the_hue() -> None:
    operation = ColorJitter(0.0, 0.0, 0.0, 0.0)
    images = torch.rand(5, 3, 6, 6)
    torch.testing.assert_close(operation.apply(images, operation.draw(5, generator())), images)


def test_jitter_parameters_are_distributed_as_torchvisions() -> None:
    count = 3000
    theirs = v2.ColorJitter(0.4, 0.3, 1.5, 0.1)
    expected = [theirs.make_params([]) for _ in range(count)]
    draws = ColorJitter(0.4, 0.3, 1.5, 0.1, 0.8).draw(count, generator(3))
    names = ("brightness_factor", "contrast_factor", "saturation_factor")
    for column, name in enumerate(names):
        result = ks_2samp(draws.factor[:, column].numpy(), [params[name] for params in expected])
        assert result.pvalue > 1e-3, name
    assert ks_2samp(draws.turn.numpy(), [params["hue_factor"] for params in expected]).pvalue > 1e-3
    assert abs(draws.on.float().mean() - 0.8) < 0.03
    code = (draws.order * torch.tensor([64, 16, 4, 1])).sum(1)
    counts = torch.unique(code, return_counts=True)[1]
    assert len(counts) == 24 and chisquare(counts.numpy()).pvalue > 1e-3
    assert torch.equal(draws.order.sort(1).values, torch.arange(4).expand(count, 4)) and HUE == 3


def test_grayscale_equals_torchvision_on_the_chosen() -> None:
    images = torch.rand(3, 3, 5, 4)
    result = Grayscale().apply(images, torch.tensor([True, False, True]))
    expected = functional.rgb_to_grayscale(images, num_output_channels=3)
    torch.testing.assert_close(result[::2], expected[::2], atol=1e-6, rtol=0)
    assert torch.equal(result[1], images[1]) and gray(images).shape == (3, 1, 5, 4)
    assert abs(Grayscale(0.2).draw(20_000, generator()).float().mean() - 0.2) < 0.01


@pytest.mark.parametrize("statistics", [IMAGENET, CIFAR10, STL10])
def test_normalize_equals_torchvision(statistics) -> None:
    images = torch.rand(2, 3, 5, 4)
    operation = statistics.normalize()
    assert operation == Normalize(statistics.mean, statistics.std)
    result = operation.apply(images, operation.draw(2, generator()))
    expected = functional.normalize(images, list(statistics.mean), list(statistics.std))
    torch.testing.assert_close(result, expected, atol=2e-6, rtol=0)


@pytest.mark.parametrize(
    ("settings", "word"),
    [((-0.1, 0, 0, 0), "brightness"), ((0, -1, 0, 0), "contrast"), ((0, 0, float("nan"), 0), "saturation"),
     ((0, 0, 0, 0.6), "hue"), ((0, 0, 0, 0, 1.1), "probability")],
)  # fmt: skip
def test_impossible_jitter_is_refused(settings: tuple, word: str) -> None:
    with pytest.raises(UserError, match=word):
        ColorJitter(*map(float, settings))


def test_impossible_grayscale_and_normalize_are_refused() -> None:
    with pytest.raises(UserError, match="probability"):
        Grayscale(-0.1)
    with pytest.raises(UserError, match="above 0"):
        Normalize((0.5, 0.5, 0.5), (0.1, 0.0, 0.1))
