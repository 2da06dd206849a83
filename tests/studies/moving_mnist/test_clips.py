import math

import pytest
import torch
from references.moving import composite
from stocks import bars, small_stock, source, tints

from vantage.errors import DataError, UserError
from vantage.studies.moving_mnist import (
    COMBINATIONS,
    Clips,
    SameClass,
    Scene,
    SharedFactors,
    compose_frames,
    load_backgrounds,
    load_digits,
    normalize_pixels,
)


@pytest.fixture(scope="module")
def clips() -> Clips:
    return Clips(small_stock(500, 1, 28), small_stock(40, 3, 96, seed=1))


def test_30_the_last_place_is_uniform_and_chance_is_its_distance_from_the_middle(clips: Clips) -> None:
    """Tolerances are five standard errors of 200,000 clips: .12 px for means of coordinates, .06 px for
    their deviations and the mean distance, .012 for the correlation; .006 for the distribution function."""
    _, clip, _ = clips.factors(
        0, torch.arange(200_000), SharedFactors(location=True)
    )  # numbers need no digit to be drawn
    position = clip.place
    assert position.min() >= 0 and position.max() <= 36
    assert position.mean(0).tolist() == pytest.approx([18.0, 18.0], abs=0.12)
    assert position.std(0).tolist() == pytest.approx([36 / math.sqrt(12)] * 2, abs=0.06)  # 10.39
    for axis in (0, 1):
        ordered_positions = position[:, axis].sort().values / 36
        steps = (torch.arange(len(position)) + 0.5) / len(position)
        assert (ordered_positions - steps).abs().max() < 0.006
    assert abs(torch.corrcoef(position.T)[0, 1]) < 0.012
    chance = (position - 18).norm(dim=1).mean().item()
    exact = 36 * (math.sqrt(2) + math.log(1 + math.sqrt(2))) / 6  # mean distance from the middle of a square
    assert exact == pytest.approx(13.774, abs=0.001)
    assert chance == pytest.approx(exact, abs=0.06)


def test_every_clip_starts_uniformly_and_the_second_view_draws_uniform_places(clips: Clips) -> None:
    way, _, other = clips.factors(3, torch.arange(500), SharedFactors(digit=True))
    for position in (way[:, 0], other.place):
        assert position.mean(0).tolist() == pytest.approx([18.0, 18.0], abs=2.4)
        assert position.std(0).tolist() == pytest.approx([10.39, 10.39], abs=1.2)
    step = (way[:, 1:] - way[:, :-1]).norm(dim=2)
    assert step.max() <= 6.4 + 1e-9 and step.median().item() == pytest.approx(6.4, abs=1e-9)


@pytest.mark.parametrize("shared", COMBINATIONS, ids=lambda shared: shared.name)
def test_shared_factors_are_shared_and_the_others_are_not(clips: Clips, shared: SharedFactors) -> None:
    pairs = clips.pairs(0, torch.arange(500), shared)
    clip, other = pairs.clip, pairs.other
    for same, is_shared, chance in (
        (clip.digit == other.digit, shared.digit, 0.02),
        (clip.background == other.background, shared.background, 0.09),
        ((clip.crop == other.crop).all(1), shared.background, 0.02),
        ((clip.place == other.place).all(1), shared.location, 0.0),
    ):
        assert bool(same.all()) if is_shared else same.double().mean() <= chance
    if not shared.location:
        assert abs(torch.corrcoef(torch.stack([clip.place[:, 0], other.place[:, 0]]))[0, 1]) < 0.2
    if shared == COMBINATIONS[3]:  # all of it: the second view is the clip's last frame
        assert torch.equal(pairs.second, clips.frames(0, torch.arange(500))[0])


def test_shared_factors_do_not_change_the_first_view(clips: Clips) -> None:
    number = torch.tensor([3, 1, 400])
    first = [clips.pairs(2, number, shared).first for shared in COMBINATIONS]
    assert all(torch.equal(first[0], other) for other in first[1:])


def test_clips_are_a_function_of_seed_epoch_and_number(clips: Clips) -> None:
    shared = SharedFactors(digit=True)
    whole = clips.pairs(1, torch.arange(20), shared)
    part = clips.pairs(1, torch.tensor([17, 4]), shared)
    assert torch.equal(whole.first[[17, 4]], part.first) and torch.equal(whole.second[[17, 4]], part.second)
    assert not torch.equal(clips.pairs(2, torch.tensor([4]), shared).first, part.first[1:])
    again = Clips(clips.digits, clips.backgrounds, seed=1).pairs(1, torch.tensor([4]), shared)
    assert not torch.equal(again.first, part.first[1:])


def test_the_first_view_has_one_background_and_the_digit_where_its_way_leads(clips: Clips) -> None:
    number = torch.tensor([5, 60])
    way, clip, other = clips.factors(0, number, SharedFactors(background=True))
    pairs = clips.pairs(0, number, SharedFactors(background=True))
    for row in range(2):
        x, y = clip.crop[row].tolist()
        ground = clips.backgrounds.pixels[clip.background[row], :, y : y + 64, x : x + 64]
        digit = clips.digits.pixels[number[row], 0]
        for frame in (0, 4, 9):
            corner = [round(part) for part in way[row, frame].tolist()]
            assert torch.equal(pairs.first[row, frame], composite(digit, ground, *corner))
        corner = [round(part) for part in other.place[row].tolist()]
        new = clips.digits.pixels[other.digit[row], 0]
        assert torch.equal(pairs.second[row], composite(new, ground, *corner))


def test_compositing_at_the_corners_of_the_canvas() -> None:
    digit = torch.randint(0, 256, (1, 28, 28), dtype=torch.uint8)
    ground = torch.randint(0, 256, (1, 3, 64, 64), dtype=torch.uint8)
    corners = torch.tensor([[[0, 0], [36, 0], [0, 36], [36, 36], [7, 21]]])
    frames = compose_frames(digit, ground, corners)
    for frame, (x, y) in enumerate(corners[0].tolist()):
        assert torch.equal(frames[0, frame], composite(digit[0], ground[0], x, y))


def test_the_same_class_shares_the_class_and_draws_every_picture_of_it() -> None:
    clips = Clips(small_stock(50, 1, 28), small_stock(5, 3, 96), Scene(same_digit=SameClass()))
    number = torch.arange(50)
    label = clips.digits.label
    digits = [clips.factors(epoch, number, SharedFactors(digit=True))[2].digit for epoch in range(60)]
    assert all(torch.equal(label[digit], label[number]) for digit in digits)
    assert len(torch.stack(digits)[:, 7].unique()) == 5
    assert (torch.stack(digits) != number).double().mean().item() == pytest.approx(0.8, abs=0.05)


def test_any_source_gives_digits_and_backgrounds() -> None:
    digits = load_digits(source(bars(20)))
    assert digits.pixels.shape == (20, 1, 28, 28) and torch.equal(
        digits.pixels[:, 0], torch.from_numpy(bars(20))
    )  # gray stays what it was
    wide = load_backgrounds(source(tints(20, side=64).repeat(2, axis=2)))
    assert wide.pixels.shape == (20, 3, 96, 96)
    exact = tints(12, side=96)
    assert torch.equal(load_backgrounds(source(exact)).pixels, torch.from_numpy(exact).permute(0, 3, 1, 2))
    few = load_backgrounds(source(exact), classes=3)
    assert set(few.label.tolist()) == {0, 1, 2} and few.classes == ("0", "1", "2")
    frames, _ = Clips(digits, wide).frames(0, torch.arange(20))
    assert normalize_pixels(frames).amin() >= -1 and normalize_pixels(frames).amax() <= 1


def test_unusable_settings_are_reported() -> None:
    with pytest.raises(DataError, match="28 by 28"):
        load_digits(source(tints(20, side=32)))
    with pytest.raises(DataError, match="no labels"):
        load_digits(source(bars(20), labeled=False))
    with pytest.raises(DataError, match="4 classes, and 10"):
        load_backgrounds(source(tints(20), classes=4))
    with pytest.raises(UserError, match="canvas of 64"):
        Clips(small_stock(4, 1, 28), small_stock(4, 3, 32))
    with pytest.raises(UserError, match="share at least one"):
        SharedFactors()
    with pytest.raises(UserError, match="none later than the last frame"):
        Scene(seen=21)
