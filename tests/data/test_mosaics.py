"""Mosaics: pixels and masks against a loop, which images are used, and sources that cannot serve."""

from collections import Counter

import numpy as np
import pytest
import torch

from vantage.data import Arrays, Source, SourceSubset
from vantage.data.resize import resize
from vantage.data.sources.mosaics import Mosaics
from vantage.data.sources.source import HasMasks
from vantage.errors import DataError

PIXELS = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
LABELS = np.array([number % 4 if number % 5 else -1 for number in range(20)])
SOURCE = Arrays(PIXELS, LABELS, "noise")
LABELED = {number for number in range(20) if number % 5}


def numbers_in(mosaics: Mosaics, mosaic: int) -> list[int]:
    """The images of a mosaic by their names."""
    return [int(name.removeprefix("row ")) for name in mosaics.name(mosaic).split(" + ")]


@pytest.mark.parametrize(("across", "side"), [(2, 8), (3, 8), (2, 5), (1, 12)])
def test_every_pixel_is_that_of_its_image_and_has_its_class(across: int, side: int) -> None:
    mosaics = Mosaics(SOURCE, 3, seed=1, across=across, side=side)
    assert isinstance(mosaics, Source) and isinstance(mosaics, HasMasks) and len(mosaics) == 3
    for mosaic in range(3):
        image, mask, numbers = mosaics.image(mosaic), mosaics.mask(mosaic), numbers_in(mosaics, mosaic)
        assert image.shape == (3, across * side, across * side) and mask.dtype == torch.uint8
        assert mask.shape == image.shape[1:] and len(numbers) == across**2 and mosaics.label(mosaic) is None
        for y in range(across * side):
            for x in range(across * side):
                number = numbers[y // side * across + x // side]
                pixels = torch.from_numpy(PIXELS[number]).permute(2, 0, 1)
                tile = pixels if side == 8 else resize(pixels, [side, side])
                assert image[:, y, x].tolist() == tile[:, y % side, x % side].tolist()
                assert int(mask[y, x]) == LABELS[number]


def test_labeled_images_are_used_equally_often() -> None:
    mosaics = Mosaics(SOURCE, 10, seed=0)
    times = Counter(number for mosaic in range(10) for number in numbers_in(mosaics, mosaic))
    assert set(times) == LABELED and set(times.values()) == {2, 3}
    few = Mosaics(SOURCE, 4, seed=0)
    assert len({number for mosaic in range(4) for number in numbers_in(few, mosaic)}) == 16


def test_a_seed_gives_the_same_mosaics_and_another_one_others() -> None:
    first, same, other = (Mosaics(SOURCE, 3, seed) for seed in (0, 0, 1))
    assert torch.equal(first.image(2), same.image(2)) and first.fingerprint() == same.fingerprint()
    assert not torch.equal(first.image(2), other.image(2))
    changes = (other, Mosaics(SOURCE, 3, 0, side=16), Mosaics(SourceSubset(SOURCE, range(19)), 3, 0))
    assert len({mosaics.fingerprint() for mosaics in (first, *changes)}) == 4
    assert first.stamp() == SOURCE.stamp()


def test_sources_that_cannot_serve_say_why() -> None:
    with pytest.raises(DataError, match="none of the 20 images has one"):
        Mosaics(Arrays(PIXELS, None, "no labels"), 2, 0)
    many = Arrays(np.zeros((300, 2, 2), np.uint8), np.arange(300), "many")
    with pytest.raises(DataError, match="300 classes are too many for a mask"):
        Mosaics(many, 2, 0)
