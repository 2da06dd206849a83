"""The demonstration's images: real, fixed, balanced, and without a pixel in both splits."""

import pickle

import pytest
import torch

from vantage.data.sources.photographs import Photographs
from vantage.errors import DataError


@pytest.fixture(scope="module")
def train() -> Photographs:
    return Photographs("train")


@pytest.fixture(scope="module")
def testing() -> Photographs:
    return Photographs("test")


def test_sizes_and_labels(train: Photographs, testing: Photographs) -> None:
    assert (len(train), len(testing), len(train.classes)) == (2592, 864, 16)
    for source in (train, testing):
        labels = torch.tensor([source.label(number) for number in range(len(source))])
        assert labels.bincount().tolist() == [len(source) // 16] * 16
        assert source.image(0).shape == source.image(len(source) - 1).shape == (3, 32, 32)
        assert source.image(5).dtype == torch.uint8
        with pytest.raises(IndexError):
            source.image(len(source))


@pytest.mark.parametrize("side", [1, 32, 48, 72])
def test_the_splits_share_no_pixel_and_keep_a_band_between_them(side: int) -> None:
    mask_of_split = {}
    for split in ("train", "test"):
        canvas = torch.zeros(320, 480, dtype=torch.bool)
        for top, left in Photographs(split, side)._corners:
            assert 0 <= top <= 320 - side and 0 <= left <= 480 - side
            canvas[top : top + side, left : left + side] = True
        mask_of_split[split] = canvas
    assert mask_of_split["train"].any() and mask_of_split["test"].any()
    neighborhood = torch.nn.functional.max_pool2d(mask_of_split["test"][None].float(), 15, stride=1, padding=7)[
        0
    ].bool()
    assert not (neighborhood & mask_of_split["train"]).any()


def test_a_patch_is_what_its_name_says(train: Photographs) -> None:
    number = len(train._corners) * 3 + 40
    photograph, _, corner = train.name(number).partition(" at ")
    top, left = map(int, corner.split(", "))
    assert train.classes[train.label(number)] == photograph == "chelsea"
    assert torch.equal(train.image(number), train._pixels[3, :, top : top + 32, left : left + 32])


def test_a_patch_can_be_changed_without_changing_the_photograph(train: Photographs) -> None:
    before = train.image(7)
    train.image(7).zero_()
    assert torch.equal(train.image(7), before) and before.any()


def test_the_photographs_are_real_and_in_color(train: Photographs) -> None:
    pixels = train._pixels.float()
    assert (pixels.std(dim=(1, 2, 3)) > 5).all()
    is_colored = (pixels[:, 0] - pixels[:, 2]).abs().mean(dim=(1, 2)) > 10
    assert is_colored.sum() >= 8
    assert len({photograph.numpy().tobytes() for photograph in train._pixels}) == 16


def test_the_fingerprint_distinguishes_the_splits_and_nothing_else(train: Photographs, testing: Photographs) -> None:
    assert train.fingerprint() == Photographs("train").fingerprint()
    assert len({train.fingerprint(), testing.fingerprint(), Photographs("train", 48).fingerprint()}) == 3


def test_a_worker_process_can_hold_it(train: Photographs) -> None:
    copy = pickle.loads(pickle.dumps(train))
    assert copy == train and torch.equal(copy.image(9), train.image(9))


@pytest.mark.parametrize("side", [0, 73])
def test_a_side_that_fits_no_block_is_refused(side: int) -> None:
    with pytest.raises(DataError, match="from 1 to 72"):
        Photographs("train", side)
