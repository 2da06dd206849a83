"""Images reach a run alike, whether they live on the device or stream through workers."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

import vantage
from vantage.data import ResidentImages, Source, SourceSubset, StreamedImages, labels_of
from vantage.data.sources.arrays import Arrays
from vantage.data.splits import split
from vantage.errors import DataError, UnreadableImage, UserError
from vantage.training.feed import Feed, open_feed
from vantage.training.images import open_images, training_part, usual_size
from vantage.training.run import Data, Run
from vantage.views import IMAGENET, EvaluationView, pirl_views

CPU, COUNT, SIDE = torch.device("cpu"), 21, 12


@dataclass(frozen=True)
class Still:
    """Two views without chance: the corner that all images have, and its mirror."""

    count: int = 2

    def crop(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> tuple[UInt8[Tensor, "3 _ _"], ...]:
        """The corner, twice."""
        return (image[:, :8, :8],) * 2

    def finish(
        self, crops: tuple[UInt8[Tensor, "b 3 _ _"], ...], generator: torch.Generator
    ) -> list[Float[Tensor, "b ..."]]:
        """As floats."""
        return [crops[0] / 255, crops[1].flip(3) / 255]

    def batch(self, images: UInt8[Tensor, "b 3 h w"], generator: torch.Generator) -> list[Float[Tensor, "b ..."]]:
        """Both at once."""
        return self.finish((images[..., :8, :8],) * 2, generator)

    def evaluation(self, view: int | None = None) -> EvaluationView:
        """The corner's size, normalized as ImageNet is."""
        return EvaluationView(8, 8, IMAGENET)


class Sized:
    """Images of given sides, each of one color; those with side 0 cannot be read."""

    classes = ()

    def __init__(self, *sides: tuple[int, int]) -> None:
        self.sides = sides

    def __len__(self) -> int:
        return len(self.sides)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        height, width = self.sides[number]
        if not height:
            raise UnreadableImage(self.name(number), "it is torn")
        return torch.full((3, height, width), number % 256, dtype=torch.uint8)

    def label(self, number: int) -> int | None:
        return None

    def name(self, number: int) -> str:
        return f"{number}.png"

    def fingerprint(self) -> str:
        return repr(self.sides)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))


def run(resident_bytes: int = 1 << 20, workers: int = 0) -> Run:
    base = vantage.moco_v2(32).rescale(4, 2)
    return replace(base, views=Still(), seed=3, data=Data(num_workers=workers, resident_bytes=resident_bytes))


def squares() -> Arrays:
    return Arrays(np.random.default_rng(0).integers(0, 256, (COUNT, SIDE, SIDE, 3), np.uint8), None, "squares")


def batches_of(feed: Feed, epoch: int, start: int = 0) -> list[tuple[Tensor, list[Tensor]]]:
    return [(batch.image, feed.views_of(batch, torch.Generator())) for batch in feed.batches(epoch, start)]


def assert_alike(ours: list[tuple[Tensor, list[Tensor]]], theirs: list[tuple[Tensor, list[Tensor]]]) -> None:
    assert len(ours) == len(theirs)
    for (image, views), (other, expected) in zip(ours, theirs, strict=True):
        assert torch.equal(image, other)
        assert all(torch.equal(one, two) for one, two in zip(views, expected, strict=True))


def kind(resident_bytes: int, source: object) -> type:
    return type(open_feed(run(resident_bytes), source, 0, 1, CPU).images)  # pyright: ignore[reportArgumentType]


def test_resident_and_streamed_images_are_the_same_in_the_same_order():
    source = squares()
    resident, streamed_feed = (open_feed(run(room), source, 0, 1, CPU) for room in (1 << 20, 0))
    assert isinstance(resident.images, ResidentImages) and isinstance(streamed_feed.images, StreamedImages)
    assert resident.steps == streamed_feed.steps == COUNT // 4
    for epoch in range(2):
        ours = batches_of(resident, epoch)
        assert_alike(ours, batches_of(streamed_feed, epoch))
        assert_alike(ours[3:], batches_of(streamed_feed, epoch, 3))
        for image, (first, mirrored) in ours:
            expected = torch.stack([source.image(number)[:, :8, :8] for number in image.tolist()]) / 255
            assert torch.equal(first, expected) and torch.equal(mirrored, expected.flip(3))
    first, second = (torch.cat([image for image, _ in batches_of(resident, epoch)]) for epoch in range(2))
    assert first.unique().numel() == len(first) and not torch.equal(first, second)


@pytest.mark.parametrize("room", [1 << 20, 0], ids=["resident", "streamed"])
def test_two_processes_share_each_batch(room: int):
    whole = batches_of(open_feed(run(room), squares(), 0, 1, CPU), 0)
    halves = [batches_of(open_feed(run(room), squares(), rank, 2, CPU), 0) for rank in range(2)]
    batches = [
        (torch.cat([one, two]), [torch.cat(pair) for pair in zip(views, others, strict=True)])
        for (one, views), (two, others) in zip(*halves, strict=True)
    ]
    assert_alike(batches, whole)


def test_a_set_is_resident_up_to_its_very_bytes():
    size = COUNT * 3 * SIDE * SIDE
    assert kind(size, squares()) is ResidentImages and kind(size - 1, squares()) is StreamedImages


@pytest.mark.parametrize(
    "sides",
    [
        [(8, 8), (9, 9)] * 4,  # sizes differ
        [(8, 8)] * 31 + [(9, 9)] + [(8, 8)] * 68,  # one that is not looked at differs
        [(8, 40)] * 8,  # wider than the square of the short side, beyond the room
    ],
    ids=["sizes", "one", "wide"],
)
def test_sets_that_do_not_fit_after_all_are_streamed(sides: list[tuple[int, int]]):
    room = len(sides) * 3 * 8 * 8 + 1000
    feed = open_feed(run(room), Sized(*sides), 0, 1, CPU)
    assert isinstance(feed.images, StreamedImages)
    for image, (first, _) in batches_of(feed, 0):
        assert torch.equal((first[:, 0, 0, 0] * 255).round().long(), image)


def test_a_batch_larger_than_the_set_is_refused_either_way():
    for room in (1 << 20, 0):
        with pytest.raises(DataError, match="batches of 4 images"):
            open_feed(run(room), Sized((8, 8), (8, 8)), 0, 1, CPU)


@pytest.mark.parametrize(
    ("sides", "expected"),
    [
        ([(8, 9)] * 3, (8, (8, 9))),
        ([(9, 8), (8, 9)], (8, None)),
        ([(5, 90), (30, 7), (80, 8)], (7, None)),
        ([(0, 0), (6, 6), (0, 0)], (6, (6, 6))),
    ],
)
def test_the_usual_size_is_the_median_short_side(
    sides: list[tuple[int, int]], expected: tuple[int, tuple[int, int] | None]
):
    assert usual_size(Sized(*sides)) == expected


def test_of_a_large_set_few_images_are_looked_at():
    numbers_read = []

    class Counted(Sized):
        def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
            numbers_read.append(number)
            return super().image(number)

    assert usual_size(Counted(*[(8, 8)] * 3200)) == (8, (8, 8))
    assert numbers_read == list(range(0, 3200, 100))


def test_a_set_of_which_nothing_can_be_read_is_refused():
    for count, count_read in ((2, 2), (3200, 32)):
        with pytest.raises(DataError, match=rf"\({count_read} of {count}\) can be read"):
            usual_size(Sized(*[(0, 0)] * count))


def test_images_are_opened_by_their_place(tmp_path: Path):
    pixels = np.zeros((5, 8, 8, 3), np.uint8)
    np.savez(tmp_path / "images.npz", images=pixels)
    reports: list[tuple[int, int]] = []
    source, line = open_images(
        Data(str(tmp_path / "images.npz")), lambda number, count: reports.append((number, count))
    )
    assert len(source) == 5 and line == "all 5 images can be read" and reports[-1] == (5, 5)
    with pytest.raises(UserError, match="--data PATH"):
        open_images(Data())
    with pytest.raises(DataError):
        open_images(Data(str(tmp_path / "nowhere")))


def test_views_lie_as_convolutions_like_them_whatever_their_axes():
    source, base = squares(), replace(run(), views=pirl_views(SIDE))
    feed = open_feed(base, source, 0, 1, CPU)
    batch = next(iter(feed.batches(0, 0)))
    whole, patches = feed.views_of(batch, torch.Generator().manual_seed(0))
    assert whole.ndim == 4 and whole.is_contiguous(memory_format=torch.channels_last)
    assert patches.ndim == 5 and patches.flatten(0, 1).is_contiguous(memory_format=torch.channels_last)
    expected = feed.views.batch(batch.pixels[0], torch.Generator().manual_seed(0))
    assert all(torch.equal(one, two) for one, two in zip((whole, patches), expected, strict=True))


def colored_images(count: int, classes: int) -> Arrays:
    """Images of which each has a gray of its own, and a label where there are classes."""
    pixels = np.arange(count, dtype=np.uint8)[:, None, None, None] * np.ones((1, 4, 4, 3), np.uint8)
    return Arrays(pixels, np.arange(count) % classes if classes else None, "synthetic")


def grays(source: Source) -> set[int]:
    """Which of the images above a source holds."""
    return {int(source.image(number)[0, 0, 0]) for number in range(len(source))}


def test_what_is_held_out_is_what_an_evaluation_tests_on() -> None:
    source = colored_images(60, 3)
    rest = training_part(source, Data(hold_out=0.2))
    kept_part, test_part = split(source)
    assert grays(rest) == grays(kept_part)
    assert not grays(rest) & grays(test_part)
    assert len(rest) == 48


def test_images_without_labels_are_held_out_at_random() -> None:
    rest = training_part(colored_images(50, 0), Data(hold_out=0.3))
    assert len(rest) == 35
    assert grays(rest) != set(range(35))
    assert grays(rest) == grays(training_part(colored_images(50, 0), Data(hold_out=0.3)))


def test_so_many_images_are_spread_over_the_classes() -> None:
    source = colored_images(60, 3)
    some = training_part(source, Data(hold_out=0.2, max_images=14))
    assert sorted(labels_of(some).bincount().tolist()) == [4, 5, 5]
    assert grays(some) < grays(training_part(source, Data(hold_out=0.2)))
    assert len(training_part(colored_images(50, 0), Data(max_images=7))) == 7
    assert isinstance(some, SourceSubset) and some.numbers.tolist() == sorted(some.numbers.tolist())


def test_everything_is_trained_on_where_nothing_else_is_asked() -> None:
    source = colored_images(10, 2)
    assert training_part(source, Data()) is source
    with pytest.raises(UserError, match="11 training images were asked for, but there are 10: ask for fewer"):
        training_part(source, Data(max_images=11))
    with pytest.raises(UserError, match=r"data.hold_out is 1.0: give a share below 1"):
        Data(hold_out=1.0)


def test_a_place_says_how_much_of_it_is_trained_on(tmp_path: Path) -> None:
    np.savez(tmp_path / "images.npz", images=np.zeros((9, 8, 8, 3), np.uint8))
    source, line = open_images(Data(str(tmp_path / "images.npz"), max_images=4))
    assert len(source) == 4
    assert line.endswith("; 4 of them are trained on")
