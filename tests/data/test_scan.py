"""A scan finds what cannot be read, remembers it, and says what to do about it."""

from pathlib import Path

import numpy as np
import pytest
import ranks
import shared_scan
from PIL import Image

from vantage.data import Folder, Source, SourceSubset, open_source, readable, scan
from vantage.data.scan import forget_scans
from vantage.errors import DataError


def folder(root: Path, count: int, bad: dict[int, bytes]) -> Path:
    root.mkdir()
    for number in range(count):
        path = root / f"{number:04d}.jpg"
        if number in bad:
            path.write_bytes(bad[number])
        else:
            Image.new("RGB", (4, 4), (number % 256, 0, 0)).save(path)
    return root


@pytest.mark.parametrize("workers", [1, 3])
def test_bad_images_are_listed(workers: int, tmp_path: Path) -> None:
    good = folder(tmp_path / "good", 1, {}) / "0000.jpg"
    source = open_source(
        folder(tmp_path / "a", 600, {0: b"", 299: b"text", 599: good.read_bytes()[:-40]}), cache=tmp_path / "c"
    )
    reports: list[tuple[int, int]] = []
    result = scan(source, workers, tmp_path / "c", progress=lambda count, of: reports.append((count, of)))
    assert [(b.number, b.name) for b in result.bad] == [(0, "0000.jpg"), (299, "0299.jpg"), (599, "0599.jpg")]
    assert (
        "empty" in result.bad[0].reason and "not a JPEG" in result.bad[1].reason and "damaged" in result.bad[2].reason
    )
    lines = result.listing.read_text().splitlines()
    assert len(lines) == 3 and lines[0] == "0000.jpg\tthe file is empty"
    names = "0000.jpg, 0299.jpg, 0599.jpg"
    assert result.summary() == f"3 of 600 images (0.50%) cannot be read: {names}; reasons are in {result.listing}"
    assert reports[-1] == (600, 600)
    rest = readable(source, result)
    assert isinstance(rest, SourceSubset) and len(rest) == 597 and rest.name(0) == "0001.jpg"
    with pytest.raises(DataError, match=r"3 of 600 .*0000.jpg: the file is empty.*--on-bad-image skip"):
        readable(source, result, "stop")


def test_names_that_a_terminal_would_obey_are_shown_on_one_line(tmp_path: Path) -> None:
    root = folder(tmp_path / "a", 20, {})
    for name in ("b\x1b[31m.jpg", "c\nd.jpg"):
        (root / name).write_bytes(b"")
    result = scan(open_source(root, cache=tmp_path / "c"), cache=tmp_path / "c")
    assert result.bad[0].name == "b\x1b[31m.jpg"
    assert result.summary().startswith("2 of 22 images (9.09%) cannot be read: b?[31m.jpg, c d.jpg; reasons are in ")
    reason = "\tthe file is empty"
    assert result.listing.read_text() == f"b?[31m.jpg{reason}\nc d.jpg{reason}\n"


def test_too_many_are_no_accident(tmp_path: Path) -> None:
    source = open_source(folder(tmp_path / "a", 400, dict.fromkeys(range(3, 8), b"")), cache=tmp_path / "c")
    result = scan(source, cache=tmp_path / "c")
    names = "0003.jpg, 0004.jpg, 0005.jpg and 2 more; reasons are in "
    with pytest.raises(DataError, match=r"5 of 400 images \(1.25%\).*more than the 1% that may be skipped: " + names):
        readable(source, result)
    assert len(readable(source, result, limit=0.02)) == 395


@pytest.mark.parametrize("bad", [1, 3])
def test_three_bad_images_do_not_stop_a_small_set(bad: int, tmp_path: Path) -> None:
    source = open_source(folder(tmp_path / "a", 20, dict.fromkeys(range(bad), b"")), cache=tmp_path / "c")
    result = scan(source, cache=tmp_path / "c")
    assert len(readable(source, result)) == 20 - bad and all(image.name in result.summary() for image in result.bad)
    with pytest.raises(DataError, match="0000.jpg: the file is empty.*--on-bad-image skip"):
        readable(source, result, "stop")


@pytest.mark.parametrize(
    ("images", "bad", "words"),
    [
        (20, 4, r"4 of 20 images \(20.00%\) cannot be read, more than the 3 that may be skipped: 0000.jpg, "),
        (2, 2, r"2 of 2 images \(100.00%\) cannot be read: 0000.jpg, 0001.jpg.*name other images"),
    ],
)
def test_more_than_three_or_all_stop_a_small_set(images: int, bad: int, words: str, tmp_path: Path) -> None:
    source = open_source(folder(tmp_path / "a", images, dict.fromkeys(range(bad), b"")), cache=tmp_path / "c")
    with pytest.raises(DataError, match=words):
        readable(source, scan(source, cache=tmp_path / "c"))


def test_a_clean_source_is_left_as_it_is(tmp_path: Path) -> None:
    source = open_source(folder(tmp_path / "a", 5, {}), cache=tmp_path / "c")
    result = scan(source, cache=tmp_path / "c")
    assert result.summary() == "all 5 images can be read" and not result.listing.exists()
    assert readable(source, result, "stop") is source


def test_the_same_images_are_scanned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = folder(tmp_path / "a", 50, {3: b"", 7: b""})
    source = open_source(root, cache=tmp_path / "c")
    first = scan(source, cache=tmp_path / "c")
    numbers_read: list[int] = []
    image = Folder.image
    monkeypatch.setattr(Folder, "image", lambda self, number: numbers_read.append(number) or image(self, number))
    assert scan(source, cache=tmp_path / "c") == first and numbers_read == [3, 7]
    Image.new("RGB", (4, 4)).save(
        root / "0003.jpg"
    )  # mended; too small a change for a fingerprint to see or not, it is tried
    assert [b.number for b in scan(source, cache=tmp_path / "c").bad] == [7]
    (root / "0050.jpg").write_bytes(b"new and bad")
    second = scan(open_source(root, cache=tmp_path / "c"), cache=tmp_path / "c")
    assert second.images == 51 and [b.number for b in second.bad] == [7, 50]


def test_a_scan_that_is_no_longer_true_is_forgotten(tmp_path: Path) -> None:
    source = open_source(folder(tmp_path / "a", 50, {}), cache=tmp_path / "c")
    assert not scan(source, cache=tmp_path / "c").bad
    (tmp_path / "a" / "0040.jpg").write_bytes(b"")  # none of those that a fingerprint reads
    assert not scan(source, cache=tmp_path / "c").bad
    assert forget_scans() and not forget_scans()
    assert [image.number for image in scan(source, cache=tmp_path / "c").bad] == [40]


def test_a_bound_on_size_is_part_of_what_was_scanned(tmp_path: Path) -> None:
    root = folder(tmp_path / "a", 5, {})
    assert not scan(open_source(root, cache=tmp_path / "c"), cache=tmp_path / "c").bad
    small = open_source(root, cache=tmp_path / "c", max_pixels=15)
    assert len(scan(small, cache=tmp_path / "c").bad) == 5


def test_a_scan_of_other_images(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.zeros((3, 2, 2), np.uint8))
    source: Source = open_source(tmp_path / "a.npz", cache=tmp_path)
    with pytest.raises(DataError, match="Scan it again"):
        readable(source, scan(SourceSubset(source, [0]), cache=tmp_path))


def test_a_cache_that_cannot_be_written_costs_time_and_the_list(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(b"no image")
    (tmp_path / "photos" / "b.png").write_bytes(b"no image")
    (tmp_path / "cache").write_bytes(b"a file in the way")
    result = scan(open_source(tmp_path / "photos", cache=tmp_path / "cache"), cache=tmp_path / "cache")
    assert result.summary() == "2 of 2 images (100.00%) cannot be read: a.png, b.png"


@pytest.mark.slow
def test_two_processes_share_the_images(tmp_path: Path) -> None:
    folder(tmp_path / "images", 700, {0: b"", 300: b"text", 699: b""})
    both = ranks.spawn(shared_scan.scan_twice, tmp_path)
    for found in both:
        assert all(found[name].tolist() == [0, 300, 699] for name in ("first", "second", "third", "other cores"))
        assert int(found["decoded second"]) == 3  # in both caches: only the bad ones are tried again
    for name in ("first", "third"):  # blocks of 256, 256 and 188 images, and the other's bad ones
        assert [int(found[f"decoded {name}"]) for found in both] == [256 + 188 + 1, 256 + 2]
