"""Batches depend on seed, epoch and image alone: not on workers, processes, or where an epoch is entered."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import UInt8
from PIL import Image
from tar_shards import samples, write_shard
from torch import Tensor

from vantage.data import (
    Batch,
    BatchOrder,
    ResidentImages,
    Source,
    SourceSubset,
    StreamedImages,
    decode_all,
    fits_in_memory,
    open_source,
)
from vantage.errors import DataError, UnreadableImage

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:This DataLoader will create"
    ),  # the tests want more workers than a small machine has cores
    pytest.mark.filterwarnings(
        "ignore:.*use of fork:DeprecationWarning"
    ),  # Python 3.12 on; torch's own way to make workers
]


@dataclass(frozen=True)
class TwoCuts:
    """Two random cuts of the same size."""

    size: int = 4

    def crop(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> tuple[UInt8[Tensor, "3 s s"], ...]:
        def patch() -> Tensor:
            top, left = (
                int(torch.randint(extent - self.size + 1, (), generator=generator)) for extent in image.shape[1:]
            )
            return image[:, top : top + self.size, left : left + self.size].contiguous()

        return patch(), patch()


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """22 photographs of different sizes."""
    (tmp_path / "a").mkdir()
    random = np.random.default_rng(0)
    for number in range(22):
        pixels = random.integers(0, 256, (8 + number % 3, 9 + number % 5, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "a" / f"{number:02d}.png")
    return open_source(tmp_path / "a", cache=tmp_path / "cache")


def same(first: list[Batch], second: list[Batch]) -> bool:
    return len(first) == len(second) and all(
        torch.equal(a.image, b.image) and all(torch.equal(x, y) for x, y in zip(a.pixels, b.pixels, strict=True))
        for a, b in zip(first, second, strict=True)
    )


def test_the_number_of_workers_changes_nothing(source: Source) -> None:
    runs = []
    for workers in (0, 1, 3):
        stream = StreamedImages(source, TwoCuts(), BatchOrder(4, 7), num_workers=workers)
        runs.append([batch for epoch in (0, 3) for batch in stream.batches(epoch)])
    assert same(runs[0], runs[1]) and same(runs[0], runs[2])
    assert len(runs[0]) == 10 and all(
        len(batch.pixels) == 2 and batch.pixels[0].shape == (4, 3, 4, 4) for batch in runs[0]
    )
    assert not torch.equal(runs[0][0].pixels[0], runs[0][0].pixels[1])


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_is_entered_anywhere(workers: int, source: Source) -> None:
    stream = StreamedImages(source, TwoCuts(), BatchOrder(4, 7), num_workers=workers)
    whole = list(stream.batches(2))
    for start in (0, 1, 3, 5):
        assert same(list(stream.batches(2, start)), whole[start:])


def test_an_epoch_left_early_does_not_spill_into_the_next(source: Source) -> None:
    stream = StreamedImages(source, TwoCuts(), BatchOrder(4, 7), num_workers=2)
    expected = list(StreamedImages(source, TwoCuts(), BatchOrder(4, 7), num_workers=0).batches(1))
    batches = stream.batches(0)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert same(list(stream.batches(1)), expected)


@pytest.mark.parametrize("workers", [0, 1])
def test_another_epoch_ends_the_one_before(workers: int, source: Source) -> None:
    """It does not go on with the images of the other one."""
    images = StreamedImages(source, TwoCuts(), BatchOrder(5), num_workers=workers)
    before = images.batches(0)
    first = next(before)
    second = next(images.batches(1))
    assert not torch.equal(first.image, second.image) and list(before) == []


def test_the_processes_together_see_the_joined_batch(source: Source) -> None:
    batches = list(StreamedImages(source, TwoCuts(), BatchOrder(6, 1), num_workers=0).batches(0))
    ranks = [
        list(StreamedImages(source, TwoCuts(), BatchOrder(6, 1, r, 3), num_workers=0).batches(0)) for r in range(3)
    ]
    for step, batch in enumerate(batches):
        assert torch.equal(batch.image, torch.cat([rank[step].image for rank in ranks]))
        for view in range(2):
            assert torch.equal(batch.pixels[view], torch.cat([rank[step].pixels[view] for rank in ranks]))


def test_an_image_is_cut_anew_each_epoch(source: Source) -> None:
    def cuts(epoch: int) -> dict[int, bytes]:
        batches = StreamedImages(source, TwoCuts(), BatchOrder(22, 1), num_workers=0).batches(epoch)
        return {
            int(n): x.numpy().tobytes() for batch in batches for n, x in zip(batch.image, batch.pixels[0], strict=True)
        }

    first, second = cuts(0), cuts(1)
    assert first.keys() == second.keys() == set(range(22))
    assert sum(first[number] != second[number] for number in first) > 15


@pytest.mark.parametrize("workers", [0, 2])
def test_a_bad_image_stops_the_run_by_name(workers: int, source: Source, tmp_path: Path) -> None:
    (tmp_path / "a" / "05.png").write_bytes(b"gone bad since the scan")
    stream = StreamedImages(source, TwoCuts(), BatchOrder(11, 7), num_workers=workers)
    with pytest.raises(UnreadableImage, match="the image 05.png: it is not a JPEG"):
        list(stream.batches(0))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_shard_that_changes_is_named_in_one_line(workers: int, tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "s" / "a.tar", samples(0, 8))
    stream = StreamedImages(
        open_source(tmp_path / "s", cache=tmp_path / "cache"), TwoCuts(), BatchOrder(4), num_workers=workers
    )
    write_shard(shard, samples(9, 9))
    with pytest.raises(DataError, match=r"^[^ ]*a\.tar changed while it was in use: start again to read it anew$"):
        list(stream.batches(0))


def test_a_bad_image_is_replaced_by_the_next(source: Source, tmp_path: Path) -> None:
    before = list(StreamedImages(source, TwoCuts(), BatchOrder(11, 7), num_workers=0).batches(0))
    for name in ("05.png", "06.png", "21.png"):
        (tmp_path / "a" / name).write_bytes(b"")
    streams = [
        StreamedImages(source, TwoCuts(), BatchOrder(11, 7), num_workers=workers, on_bad_image="skip")
        for workers in (0, 2)
    ]
    runs = [list(stream.batches(0)) for stream in streams]
    assert same(runs[0], runs[1])
    for stream in streams:
        assert sorted(image.name for image in stream.missed) == ["05.png", "06.png", "21.png"]
        next(stream.batches(1))
        assert len(stream.missed) < 3  # of this epoch
    substitute = {5: 7, 6: 7, 21: 0}
    for old, new in zip(before, runs[0], strict=True):
        assert new.image.tolist() == [substitute.get(number, number) for number in old.image.tolist()]


def test_all_bad_ends(tmp_path: Path, source: Source) -> None:
    for path in (tmp_path / "a").iterdir():
        path.write_bytes(b"")
    stream = StreamedImages(source, TwoCuts(), BatchOrder(4, 0), num_workers=0, on_bad_image="skip")
    with pytest.raises(UnreadableImage):
        list(stream.batches(0))


def test_streams_that_cannot_be_made(source: Source) -> None:
    with pytest.raises(DataError, match="there are 22 images"):
        StreamedImages(source, TwoCuts(), BatchOrder(23, 0))
    with pytest.raises(DataError, match="multiple of 3"):
        StreamedImages(source, TwoCuts(), BatchOrder(4, 0, world_size=3))
    with pytest.raises(DataError, match="multiple of 3"):
        ResidentImages(source, BatchOrder(4, 0, world_size=3), size=8)


def test_resident_batches(tmp_path: Path) -> None:
    images = np.random.default_rng(1).integers(0, 256, (10, 6, 6, 3), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", images=images)
    source = open_source(tmp_path / "a.npz", cache=tmp_path)
    resident = ResidentImages(source, BatchOrder(4, 5))
    whole = list(resident.batches(3))
    assert resident.steps == len(whole) == 2
    for batch in whole:
        (pixels,) = batch.pixels
        assert torch.equal(pixels, torch.from_numpy(images)[batch.image].permute(0, 3, 1, 2))
    assert same(list(resident.batches(3, 1)), whole[1:])
    stream = StreamedImages(source, TwoCuts(), BatchOrder(4, 5), num_workers=0)
    assert [b.image.tolist() for b in stream.batches(3)] == [b.image.tolist() for b in whole]
    ranks = [ResidentImages(source, BatchOrder(4, 5, rank, 2)) for rank in range(2)]
    for step, batch in enumerate(whole):
        assert torch.equal(batch.image, torch.cat([list(r.batches(3))[step].image for r in ranks]))


def test_decoding_reports_how_far_it_is(source: Source, tmp_path: Path) -> None:
    many, reports = SourceSubset(source, [0, 2] * 50), list[tuple[int, int]]()

    def report(done: int, total: int) -> None:
        reports.append((done, total))

    decode_all(many, size=8, cache=tmp_path / "kept", progress=report)
    assert reports == [(32, 100), (64, 100), (96, 100), (100, 100)]
    decode_all(many, size=8, cache=tmp_path / "kept", progress=report)  # read, not decoded
    ResidentImages(many, BatchOrder(4, 0), size=8, progress=report)
    assert len(reports) == 8


def test_resident_images_are_brought_to_one_size(source: Source) -> None:
    with pytest.raises(DataError, match="01.png is 10 x 9 pixels, but the first is 9 x 8"):
        decode_all(source)
    pixels = decode_all(source, size=8)
    assert pixels.shape == (22, 3, 8, 8)
    assert torch.equal(pixels[0], source.image(0)[:, :, 0:8]) or torch.equal(pixels[0], source.image(0)[:, :, 1:9])


def test_resident_images_stay_within_their_budget(source: Source) -> None:
    need = 22 * 3 * 8 * 8
    assert fits_in_memory(source, 8, need) and not fits_in_memory(source, 8, need - 1)
    with pytest.raises(DataError, match="22 images of 8 x 8 pixels take"):
        ResidentImages(source, BatchOrder(4, 0), size=8, budget=need - 1)


def test_decoded_pixels_are_kept(source: Source, tmp_path: Path) -> None:
    first = decode_all(source, 8, cache=tmp_path / "kept")
    (file,) = (tmp_path / "kept").rglob("*.npy")
    mark = np.load(file)
    mark[0] = 77
    np.save(file, mark)
    assert (decode_all(source, 8, cache=tmp_path / "kept")[0] == 77).all()
    file.write_bytes(file.read_bytes()[:200])
    assert torch.equal(decode_all(source, 8, cache=tmp_path / "kept"), first)
    assert decode_all(SourceSubset(source, [0, 1]), 8, cache=tmp_path / "kept").shape[0] == 2


def test_a_bad_image_in_a_resident_set(source: Source, tmp_path: Path) -> None:
    (tmp_path / "a" / "05.png").write_bytes(b"")
    with pytest.raises(UnreadableImage, match="05.png"):
        ResidentImages(source, BatchOrder(4, 0), size=8)


@pytest.mark.gpu
def test_batches_on_a_gpu(source: Source) -> None:
    cpu_batches = list(ResidentImages(source, BatchOrder(4, 5), size=8).batches(0))
    gpu_batches = [
        batch.to("cpu") for batch in ResidentImages(source, BatchOrder(4, 5), size=8, device="cuda").batches(0)
    ]
    torch.cuda.synchronize()
    assert same(cpu_batches, gpu_batches)
    pinned_batches = list(StreamedImages(source, TwoCuts(), BatchOrder(4, 7), num_workers=1).batches(0))
    assert all(batch.pixels[0].is_pinned() for batch in pinned_batches)
    assert same(pinned_batches, list(StreamedImages(source, TwoCuts(), BatchOrder(4, 7), num_workers=0).batches(0)))


def test_an_image_that_was_replaced_is_decoded_anew_though_the_fingerprint_did_not_read_it(tmp_path: Path) -> None:
    folder, cache = tmp_path / "images", tmp_path / "cache"
    folder.mkdir()
    for number in range(100):
        Image.new("RGB", (6, 6), (number,) * 3).save(folder / f"{number:03d}.png")
    before = open_source(folder, cache=cache)
    assert int(decode_all(before, cache=cache)[2].max()) == 2
    files = list((cache / "decoded").iterdir())
    decode_all(open_source(folder, cache=cache), cache=cache)
    assert list((cache / "decoded").iterdir()) == files  # what has not changed is not decoded again
    Image.new("RGB", (6, 6), (255,) * 3).save(folder / "002.png")
    after = open_source(folder, cache=cache)
    assert after.fingerprint() == before.fingerprint()
    assert int(decode_all(after, cache=cache)[2].min()) == 255
    part = SourceSubset(after, range(50))
    assert int(decode_all(part, cache=cache)[2].min()) == 255


@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_an_array_that_was_replaced_is_read_anew(ending: str, tmp_path: Path) -> None:
    file, cache, pixels = tmp_path / f"images.{ending}", tmp_path / "cache", np.zeros((100, 6, 6, 3), np.uint8)
    for value in (0, 255):
        pixels[2] = value
        np.save(file, pixels) if ending == "npy" else np.savez(file, images=pixels)
        assert int(decode_all(open_source(file, cache=cache), cache=cache)[2].max()) == value
