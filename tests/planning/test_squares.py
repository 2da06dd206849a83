"""A plan keeps photographs of several sizes in memory as squares, if there is time to decode them."""

from pathlib import Path

import pytest
import torch
from known_pace import Mixed, Pace, noise
from torchvision.transforms.v2 import functional as F

import vantage
from vantage.data import BatchOrder, ResidentImages, Source, StreamedImages
from vantage.data.resize import resize
from vantage.planning import measured_rungs, plan, squares
from vantage.planning.plan import make_plan, rows
from vantage.planning.squares import SizeLook
from vantage.training.feed import feed_of
from vantage.training.loop import resume, train
from vantage.training.run import Data
from vantage.views import moco_v2_views

MIXED = Mixed(count=60, least=40, most=90)


def planned(source: Source, minutes: float = 5.0, **changes: object) -> vantage.Run:
    return plan(source, minutes, measure=Pace(), changes=changes)


@pytest.mark.parametrize(("size", "side"), [(32, 128), (64, 128), (96, 192), (224, 448)])
def test_images_of_several_sizes_are_kept_at_twice_the_view_and_no_less_than_128_pixels(size: int, side: int) -> None:
    assert plan(MIXED, 5.0, size=size, measure=Pace()).data.resident_side == side


def test_images_that_stay_as_they_are_have_no_squares() -> None:
    assert planned(noise(600)).data.resident_side == 0


def test_images_of_one_size_that_are_too_large_are_kept_as_squares() -> None:
    source = noise(40, side=300, width=310)
    assert planned(source).data.resident_side == 0
    assert planned(source, **{"data.resident_bytes": 40 * 3 * 200 * 200}).data.resident_side == 128
    assert planned(source, **{"data.resident_bytes": 40 * 3 * 100 * 100}).data.resident_side == 0


@pytest.mark.parametrize(("side", "kept"), [(64, 0), (65, 64), (300, 64)])
def test_squares_larger_than_twice_the_view_are_made_smaller_since_nothing_of_them_is_lost(
    side: int, kept: int
) -> None:
    assert plan(noise(40, side=side), 5.0, size=32, measure=Pace()).data.resident_side == kept


def test_a_small_machine_plans_what_its_training_can_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vantage.training.feed.memory_of", lambda device: 2 * len(MIXED) * 3 * 100 * 100)
    run = planned(MIXED)
    assert run.data.resident_side == 0
    feed = feed_of(run.views, Data(resident_side=128), BatchOrder(8), MIXED, torch.device("cpu"))
    assert isinstance(feed.images, StreamedImages)


def test_what_is_set_wins() -> None:
    assert planned(MIXED, **{"data.resident_side": 80}).data.resident_side == 80
    assert planned(MIXED, **{"data.resident_side": 0}).data.resident_side == 0


def test_without_time_to_decode_them_images_are_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at once, in a quarter of 300 seconds."""
    for seconds, side in ((2.0, 128), (3.0, 0)):
        monkeypatch.setattr(squares, "CORES", 2)
        look = SizeLook(60, None, seconds)
        monkeypatch.setattr(measured_rungs, "look_at_sizes", lambda _, look=look: look)
        assert planned(MIXED).data.resident_side == side


def test_the_plan_says_so() -> None:
    result = make_plan(MIXED, 5.0, measure=Pace())
    assert dict(rows(result))["epochs"].endswith("of 60 images, kept as squares of 128 px")
    assert "squares" not in dict(rows(make_plan(noise(600), 5.0, measure=Pace())))["epochs"]


def test_squares_are_the_middles_of_the_scaled_images() -> None:
    arguments = (moco_v2_views(32), Data(num_workers=0), BatchOrder(10), MIXED, torch.device("cpu"))
    assert isinstance(feed_of(*arguments).images, StreamedImages)
    kept = feed_of(arguments[0], Data(resident_side=48), *arguments[2:]).images
    assert isinstance(kept, ResidentImages) and kept.pixels.shape == (60, 3, 48, 48)
    for number in (0, 31, 59):
        expected = F.center_crop(resize(MIXED.image(number), [48]), [48, 48])
        assert torch.equal(kept.pixels[number], expected)


def test_more_squares_than_the_memory_may_hold_are_streamed() -> None:
    data = Data(resident_side=48, resident_bytes=60 * 3 * 48 * 48 - 1, num_workers=0)
    assert isinstance(
        feed_of(moco_v2_views(32), data, BatchOrder(10), MIXED, torch.device("cpu")).images, StreamedImages
    )


@pytest.mark.slow
def test_such_a_plan_trains_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    changes = {"epochs": 2, "batch_size": 16, "hardware.precision": "32-true", "hardware.accelerator": "cpu"}
    run = plan(MIXED, 5.0, measure=Pace(), backbone="convolutions", changes=changes)
    train(run, tmp_path / "run", source=MIXED)
    assert resume(tmp_path / "run", source=MIXED).finished
