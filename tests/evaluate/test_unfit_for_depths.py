"""What linear protocols of several depths or encoders refuse: encoders, sets and settings that do not fit."""

from pathlib import Path

import numpy as np
import pytest
from tiny import cpu_work, images, tiny_run
from tiny_maps import mapped_run, two_run

from vantage.data.sources.arrays import Arrays
from vantage.data.sources.subset import SourceSubset
from vantage.errors import UserError
from vantage.evaluate import LinearCMC, LinearMoCo, LinearMulti, LinearRing
from vantage.evaluate.protocols.linear.depths import statistics_of
from vantage.frozen.encoder import random_encoder, raw_pixels


def test_cmc_needs_all_encoders_of_a_run_with_several(tmp_path: Path) -> None:
    one, part = random_encoder(tiny_run()), random_encoder(two_run(), network=0)
    with pytest.raises(UserError, match=r"this run \(moco_v2\) has one encoder for all views: use linear-moco"):
        LinearCMC(epochs=1)(one, images(12, 0), images(6, 1), cpu_work(tmp_path))
    with pytest.raises(UserError, match="--network picks one: omit it"):
        LinearCMC(epochs=1)(part, images(12, 0), images(6, 1), cpu_work(tmp_path))
    outcome = LinearCMC(learning_rates=(0.1,), epochs=1)(
        raw_pixels(two_run()), images(12, 0), images(6, 1), cpu_work(tmp_path)
    )
    assert outcome.test_images == 6


@pytest.mark.parametrize("protocol", [LinearRing(), LinearMulti()])
def test_a_backbone_without_maps_is_refused(protocol, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="TinyFeatures has no maps"):
        protocol(random_encoder(tiny_run()), images(12, 0), images(6, 1), cpu_work(tmp_path))


@pytest.mark.parametrize("protocol", [LinearMoCo(), LinearRing(), LinearMulti()])
def test_one_class_and_sets_without_a_common_class_are_refused(protocol, tmp_path: Path) -> None:
    encoder, many = random_encoder(mapped_run()), images(12, 0)
    with pytest.raises(UserError, match="all 12 labeled training images are of one class"):
        protocol(encoder, images(12, 0, classes=1), many, cpu_work(tmp_path))
    other = images(6, 1)
    other._labels = other._labels * 0 + 2
    many._labels = many._labels % 2
    with pytest.raises(UserError, match="none of the 6 test images is of a class that the training images have"):
        protocol(encoder, many, other, cpu_work(tmp_path))


def test_a_test_class_without_training_images_counts_as_wrong(tmp_path: Path) -> None:
    train, test = images(30, 0, noise=10), images(30, 1, noise=10)
    train = SourceSubset(train, [number for number in range(30) if number % 3 < 2])
    outcome = LinearRing(learning_rates=(0.1,), epochs=10, batch_size=8)(
        random_encoder(mapped_run()), train, test, cpu_work(tmp_path)
    )
    assert outcome.accuracy.top1 <= 100 * 2 / 3 + 1e-9


@pytest.mark.parametrize("protocol", [LinearCMC, LinearRing, LinearMulti])
def test_invalid_settings_are_refused(protocol) -> None:
    for settings in ({"learning_rates": ()}, {"learning_rates": (0.0,)}, {"epochs": 0}, {"batch_size": 0}):
        with pytest.raises(UserError, match="linear evaluation"):
            protocol(**settings)


def test_invalid_milestones_are_refused() -> None:
    for falls in ((0.5, 0.2), (1.0,)):
        with pytest.raises(UserError, match="give increasing shares between 0 and 1"):
            LinearMulti(milestones=falls)
    with pytest.raises(UserError, match="weight_decay is -1.0"):
        LinearMulti(weight_decay=-1.0)


def test_images_of_one_color_cannot_be_normalized(tmp_path: Path) -> None:
    gray = Arrays(np.full((12, 32, 32, 3), 7, np.uint8), np.arange(12) % 3, "gray")
    with pytest.raises(UserError, match="a channel of the training images is constant"):
        statistics_of(random_encoder(mapped_run()), gray, cpu_work(tmp_path))
