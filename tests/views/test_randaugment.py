"""RandAugment: each change against PIL as timm calls it, and what is drawn."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.stats import chisquare, norm

from vantage.errors import UserError
from vantage.views import CHANGES, SHAPE_CHANGES, RandAugment
from vantage.views.operations.changes import (
    AutoContrast,
    Brightness,
    Contrast,
    Equalize,
    Identity,
    Invert,
    Posterize,
    Saturation,
    Sharpness,
    Solarize,
    SolarizeAdd,
    Strength,
)
from vantage.views.operations.cubic import sample_cubic
from vantage.views.operations.randaugment import RandDraw
from vantage.views.operations.warps import Rotate, Shear, Translate

theirs = pytest.importorskip("timm.data.auto_augment", reason="timm is an extra")

PAIRS = {
    "AutoContrast": AutoContrast(),
    "Equalize": Equalize(),
    "Invert": Invert(),
    "Rotate": Rotate(),
    "Posterize": Posterize(),
    "Solarize": Solarize(),
    "SolarizeAdd": SolarizeAdd(),
    "Color": Saturation(),
    "Contrast": Contrast(),
    "Brightness": Brightness(),
    "Sharpness": Sharpness(),
    "ShearX": Shear(0),
    "ShearY": Shear(1),
    "TranslateXRel": Translate(0),
    "TranslateYRel": Translate(1),
}


def photograph(seed: int = 0, height: int = 40, width: int = 48) -> torch.Tensor:
    """A smooth image in whole shades, as photographs are."""
    noise = torch.rand(1, 3, height + 4, width + 4, generator=torch.Generator().manual_seed(seed))
    soft = torch.nn.functional.avg_pool2d(noise, 5, 1)
    return ((soft - soft.min()) / (soft.max() - soft.min()) * 255).round() / 255


def strength(level: float, sign: float = 1.0, cubic: bool = False) -> Strength:
    return Strength(torch.tensor([level]), torch.tensor([sign]), torch.tensor([cubic]))


def test_the_list_is_timms():
    assert list(PAIRS) == theirs._RAND_TRANSFORMS and tuple(PAIRS.values()) == CHANGES


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("level", [2.6, 3.7, 9.4, 10.0])
def test_a_change_is_pils(name: str, level: float):
    """To the rounding of PIL's results to whole shades."""
    image, change = photograph(), PAIRS[name]
    pil = Image.fromarray((image[0] * 255).byte().permute(1, 2, 0).numpy())
    for seed, (cubic, resampling) in enumerate(
        ((False, Image.Resampling.BILINEAR), (True, Image.Resampling.BICUBIC)) * 2
    ):
        theirs.random.seed(seed)
        to_argument = theirs.LEVEL_TO_ARG[name]
        arguments = to_argument(level, {"translate_pct": 0.45}) if to_argument else ()
        sign = -1.0 if arguments and arguments[0] < 0 else 1.0
        expected = theirs.NAME_TO_OP[name](pil, *arguments, fillcolor=(124, 116, 104), resample=resampling)
        pixels = change(image, strength(level / 10, sign, cubic))[0].permute(1, 2, 0).numpy() * 255
        difference = np.abs(pixels - np.asarray(expected))
        assert difference.max() < 1.5, f"{name} at {level}"


@pytest.mark.parametrize("sides", [(40, 48), (9, 3), (2, 2), (1, 5), (1, 1)])
def test_cubic_samples_are_pils_polynomial_at_any_position(sides: tuple[int, int]):
    """The loop over sixteen pixels, edges repeated, in hard noise; PIL rounds in between."""
    height, width = sides
    image = torch.rand(1, 2, height, width, dtype=torch.float64)
    x, y = (torch.rand(1, 5, 7, dtype=torch.float64) * side for side in (width, height))
    expected = torch.zeros(1, 2, 5, 7, dtype=torch.float64)
    for row, column in np.ndindex(5, 7):
        pair = y[0, row, column].item() - 0.5, x[0, row, column].item() - 0.5
        for down, right in np.ndindex(4, 4):
            (r, a), (q, b) = (tap(at, step) for at, step in zip(pair, (down, right), strict=True))
            pixel = image[0, :, min(max(r, 0), height - 1), min(max(q, 0), width - 1)]
            expected[0, :, row, column] += a * b * pixel
    torch.testing.assert_close(sample_cubic(image, torch.stack((x, y), -1)), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("across", "down"), [(False, True), (True, False), (False, False)])
def test_cubic_samples_leave_out_what_is_nothing(across: bool, down: bool):
    """Where no position is between two pixels, on one or both axes, fewer samples give the same bits."""
    image, (rows, columns) = torch.rand(2, 3, 9, 11), torch.meshgrid(torch.arange(9), torch.arange(11), indexing="ij")
    x, y = (axis + 0.5 + 3 * moves * torch.rand(2, 9, 11) for axis, moves in ((columns, across), (rows, down)))
    positions = torch.stack((x, y), -1)
    assert torch.equal(sample_cubic(image, positions, across, down), sample_cubic(image, positions))


def test_a_batch_is_changed_as_its_images_one_by_one():
    """Warps are made together and single images without copies; neither changes what was given."""
    images = torch.cat([photograph(seed) for seed in range(24)])
    before, draws = images.clone(), RandAugment().draw(24, torch.Generator().manual_seed(0))
    together = RandAugment().apply(images, draws)
    for row in range(24):
        alone = RandAugment().apply(images[row : row + 1], RandDraw(*(field[row : row + 1] for field in draws)))
        torch.testing.assert_close(together[row : row + 1], alone, rtol=0, atol=1e-6)
    assert torch.equal(images, before)


def tap(position: float, step: int) -> tuple[int, float]:
    """One of four pixels around a position on a line, and its weight: Keys' kernel with a = -1."""
    first = math.floor(position)
    d = position - first
    weights = (-d * (1 - d) ** 2, 1 - 2 * d**2 + d**3, d + d**2 - d**3, -(d**2) * (1 - d))
    return first - 1 + step, weights[step]


def test_solarize_does_nothing_at_ten():
    image = photograph()
    assert torch.equal(Solarize()(image, strength(1.0)), image)
    assert not torch.equal(Solarize()(image, strength(0.9)), image)


@pytest.mark.parametrize("change", [*CHANGES, Identity()], ids=str)
@given(seed=st.integers(0, 20))
def test_each_image_is_changed_by_itself_and_stays_in_range(change, seed: int):
    generator = torch.Generator().manual_seed(seed)
    images = torch.cat([photograph(n, 9, 11) for n in range(3)])
    before = images.clone()
    level, sign = torch.rand(3, generator=generator), torch.tensor([1.0, -1.0, 1.0])
    draws = Strength(level, sign, torch.tensor([True, False, True]))
    outputs = change(images, draws)
    assert outputs.shape == images.shape and outputs.min() >= 0 and outputs.max() <= 1 and torch.equal(images, before)
    for row in range(3):
        alone = change(images[row : row + 1], Strength(*(part[row : row + 1] for part in draws)))
        torch.testing.assert_close(outputs[row : row + 1], alone, rtol=0, atol=1e-6)


def test_draws_have_the_documented_distribution():
    """Changes evenly, half of them made; levels of a normal about 10, cut there: half are exactly the strongest."""
    draws = RandAugment().draw(30_000, torch.Generator().manual_seed(0))
    assert draws.change.shape == (30_000, 2)
    assert chisquare(np.bincount(draws.change.flatten().numpy(), minlength=15)).pvalue > 1e-3
    for share in (draws.on.float().mean(), draws.cubic.float().mean(), (draws.sign > 0).float().mean()):
        assert abs(float(share) - 0.5) < 0.01
    assert abs(float((draws.level == 1).float().mean()) - 0.5) < 0.01
    weaker = (1 - draws.level[draws.level < 1]) * 10
    assert abs(float((weaker < 0.5).float().mean()) - (norm.cdf(1) - norm.cdf(-1))) < 0.01


def test_two_changes_follow_each_other():
    images = torch.cat([photograph(n, 12, 12) for n in range(4)])
    rows = 4
    change = torch.tensor([[2, 9], [9, 2], [2, 2], [7, 3]])
    on = torch.tensor([[True, True], [True, True], [True, True], [False, False]])
    level = torch.full((rows, 2), 0.7)
    draws = RandDraw(change, on, level, torch.ones(rows, 2), torch.zeros(rows, 2, dtype=torch.bool))
    outputs, one = RandAugment().apply(images, draws), strength(0.7)
    brighter, negative = Brightness(), Invert()
    torch.testing.assert_close(outputs[:1], brighter(negative(images[:1], one), one))
    torch.testing.assert_close(outputs[1:2], negative(brighter(images[1:2], one), one))
    torch.testing.assert_close(outputs[2:3], images[2:3], rtol=0, atol=1e-6)
    assert torch.equal(outputs[3], images[3])


def test_channels_of_a_color_space_keep_their_colors():
    """CMC's list only moves pixels: an image of one color, the fill's, comes out as it was."""
    even = (torch.tensor((124.0, 116.0, 104.0)) / 255)[None, :, None, None].expand(50, 3, 8, 8)
    augment = RandAugment(SHAPE_CHANGES, probability=1.0)
    draws = augment.draw(50, torch.Generator().manual_seed(0))
    assert len(draws.change.unique()) == len(SHAPE_CHANGES) == 6
    torch.testing.assert_close(augment.apply(even, draws), even, rtol=0, atol=1e-6)


def test_senseless_settings_are_refused():
    for wrong in ({"changes": ()}, {"count": 0}, {"magnitude": 11.0}, {"spread": -1.0}, {"probability": 1.5}):
        with pytest.raises(UserError):
            RandAugment(**wrong)  # pyright: ignore
    with pytest.raises(UserError, match="axis"):
        Shear(2)
