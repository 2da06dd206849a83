"""Crops and flips against torchvision's, on the same boxes; the law of the boxes against torchvision's sampler."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp
from torch.nn.functional import interpolate
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional

from vantage.errors import UserError
from vantage.views import HorizontalFlip, RandomResizedCrop
from vantage.views.operations.crops import CropDraw
from vantage.views.operations.resampling import reflection, resample

SIDES = st.integers(1, 70)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def torchvision_crop(image: torch.Tensor, box: tuple[int, ...], size: int) -> torch.Tensor:
    top, left, height, width = box
    return functional.resized_crop(image, top, left, height, width, [size, size], antialias=True)


@given(height=SIDES, width=SIDES, size=SIDES, seed=st.integers(0, 99))
def test_crops_equal_torchvision_for_any_sizes(height: int, width: int, size: int, seed: int) -> None:
    images = torch.rand(3, 3, height, width, generator=generator(seed))
    crop = RandomResizedCrop(size)
    draws = crop.draw(3, generator(seed))
    result = crop.apply(images, draws)
    boxes = torch.stack(crop.boxes(draws, height, width), 1).tolist()
    expected = torch.stack([torchvision_crop(image, box, size) for image, box in zip(images, boxes, strict=True)])
    torch.testing.assert_close(result, expected, atol=1e-5, rtol=0)


@given(height=SIDES, width=SIDES, size=SIDES, seed=st.integers(0, 99))
def test_worker_and_batch_crops_agree_within_a_gray_level(height: int, width: int, size: int, seed: int) -> None:
    image = torch.randint(0, 256, (3, height, width), dtype=torch.uint8, generator=generator(seed))
    crop = RandomResizedCrop(size)
    one = crop.crop_one(image, generator(seed))
    batch = crop.apply(image[None] * (1 / 255), crop.draw(1, generator(seed)))[0]
    assert one.dtype == torch.uint8 and one.shape == (3, size, size)
    # Whole gray levels after each of the two axes: half a level twice, and torchvision's fixed-point weights.
    assert (one - batch * 255).abs().max() <= 1.05


def test_the_worker_crop_is_torchvisions_bit_for_bit() -> None:
    image = torch.randint(0, 256, (3, 60, 41), dtype=torch.uint8)
    crop = RandomResizedCrop(24)
    box = tuple(int(part) for part in crop.boxes(crop.draw(1, generator(7)), 60, 41))
    ours, theirs = crop.crop_one(image, generator(7)), torchvision_crop(image, box, 24)
    # Without AVX2 torchvision resizes in float32 and rounds once; torch's uint8 operator rounds along each axis.
    same_operator = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    assert (ours.int() - theirs.int()).abs().max() <= (0 if same_operator else 1)


@given(height=SIDES, width=SIDES, seed=st.integers(0, 999))
def test_one_box_in_plain_numbers_is_the_box_of_a_batch(height: int, width: int, seed: int) -> None:
    """The crop is larger than any image, so that it shows every pixel of its box."""
    crop = RandomResizedCrop(72, scale=(0.3, 1.0))
    box = [int(part) for part in crop.boxes(crop.draw(1, generator(seed)), height, width)]
    image = torch.randint(0, 256, (3, height, width), dtype=torch.uint8, generator=generator(seed + 1))
    part = functional.crop(image, *box)[None].contiguous(memory_format=torch.channels_last)
    expected = interpolate(part, [72, 72], mode="bilinear", antialias=True)[0]
    assert torch.equal(crop.crop_one(image, generator(seed)), expected)


@given(height=SIDES, width=SIDES, seed=st.integers(0, 999))
def test_boxes_lie_inside_the_image(height: int, width: int, seed: int) -> None:
    crop = RandomResizedCrop(8, scale=(0.01, 1.0), ratio=(0.1, 10.0))
    top, left, high, wide = crop.boxes(crop.draw(50, generator(seed)), height, width)
    assert (high >= 1).all() and (wide >= 1).all() and (top >= 0).all() and (left >= 0).all()
    assert (top + high <= height).all() and (left + wide <= width).all()


@pytest.mark.parametrize(("height", "width"), [(1, 100), (100, 1), (3, 300), (1, 1)])
def test_images_where_no_box_fits_give_torchvisions_central_one(height: int, width: int) -> None:
    crop = RandomResizedCrop(8, scale=(1.0, 1.0), ratio=(0.9, 1.2))
    image = torch.zeros(3, height, width)
    expected = v2.RandomResizedCrop(8, scale=(1.0, 1.0), ratio=(0.9, 1.2)).make_params([image])
    box = [int(part) for part in crop.boxes(crop.draw(1, generator()), height, width)]
    assert box == [expected[name] for name in ("top", "left", "height", "width")]


@pytest.mark.parametrize(("height", "width"), [(32, 32), (375, 500)])
def test_boxes_are_distributed_as_torchvisions(height: int, width: int) -> None:
    count = 4000
    theirs = v2.RandomResizedCrop(32, scale=(0.2, 1.0))
    image = torch.zeros(1, height, width)
    expected = [theirs.make_params([image]) for _ in range(count)]
    crop = RandomResizedCrop(32, scale=(0.2, 1.0))
    boxes = crop.boxes(crop.draw(count, generator(1)), height, width)
    for name, ours in boxes._asdict().items():
        assert ks_2samp(ours.numpy(), [box[name] for box in expected]).pvalue > 1e-3, name
    area = ks_2samp((boxes.height * boxes.width).numpy(), [box["height"] * box["width"] for box in expected])
    assert area.pvalue > 1e-3


def test_the_last_position_can_be_drawn_and_none_beyond() -> None:
    crop = RandomResizedCrop(4, scale=(0.25, 0.25), ratio=(1.0, 1.0))
    share, one = torch.full((2, 10), 0.25, dtype=torch.float64), torch.ones(2, 10, dtype=torch.float64)
    ends = torch.tensor([0.0, 1.0], dtype=torch.float64)
    boxes = crop.boxes(CropDraw(share, one, ends, ends), 8, 8)
    assert boxes.top.tolist() == [0, 4] and boxes.left.tolist() == [0, 4]


def test_flip_mirrors_the_chosen_and_only_those() -> None:
    images = torch.rand(4, 3, 5, 6)
    before = images.clone()
    result = HorizontalFlip().apply(images, torch.tensor([True, False, False, True]))
    expected = torch.stack([images[0].flip(2), images[1], images[2], images[3].flip(2)])
    assert torch.equal(result, expected) and torch.equal(images, before)


def test_flip_follows_its_probability() -> None:
    assert abs(HorizontalFlip(0.3).draw(20_000, generator()).float().mean() - 0.3) < 0.01
    assert not HorizontalFlip(0.0).draw(100, generator()).any() and HorizontalFlip(1.0).draw(100, generator()).all()


@given(size=st.integers(1, 20), radius=st.integers(0, 30))
def test_reflection_walks_back_and_forth(size: int, radius: int) -> None:
    walk = list(range(size)) + list(range(size - 2, 0, -1))
    expected = [walk[position % len(walk)] for position in range(-radius, size + radius)]
    assert reflection(size, radius).tolist() == expected


def test_resample_is_rows_image_columns() -> None:
    images, rows, columns = torch.rand(2, 3, 4, 5), torch.rand(2, 6, 4), torch.rand(2, 5, 7)
    expected = torch.einsum("byh,bchw,bwx->bcyx", rows, images, columns)
    torch.testing.assert_close(resample(images, rows, columns), expected)


@pytest.mark.parametrize(
    ("settings", "word"),
    [({"size": 0}, "size"), ({"size": 8, "scale": (0.0, 1.0)}, "scale"), ({"size": 8, "scale": (0.5, 0.2)}, "scale"),
     ({"size": 8, "scale": (0.5, 1.5)}, "scale"), ({"size": 8, "ratio": (0.0, 1.0)}, "ratio")],
)  # fmt: skip
def test_impossible_crops_are_refused(settings: dict, word: str) -> None:
    with pytest.raises(UserError, match=word):
        RandomResizedCrop(**settings)
    with pytest.raises(UserError, match="probability"):
        HorizontalFlip(1.5)
