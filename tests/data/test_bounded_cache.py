"""Sources and decoded images in a cache that is bounded: nothing fails, and what was removed is made again."""

import os
import pickle
import tarfile
from pathlib import Path

import pytest
import torch
from kept_images import IMAGES, as_png
from tiny import images

from vantage.data import decode_all, open_source
from vantage.data.scan import scan
from vantage.data.sources.source import cache_key
from vantage.storage.cache_size import cache_files, make_room


@pytest.fixture
def tar(tmp_path: Path) -> Path:
    for number, pixels in enumerate(IMAGES):
        (tmp_path / f"{number}.png").write_bytes(as_png(pixels))
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        for number in range(len(IMAGES)):
            archive.add(tmp_path / f"{number}.png", f"{number}.png")
    return tmp_path / "a.tar.gz"


def test_a_decompressed_tar_stays_as_long_as_it_is_used(
    tar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VANTAGE_CACHE_SIZE", "0KB")
    cache = tmp_path / "cache"
    source = open_source(tar, cache=cache)
    (copy,) = (cache / "tars").glob("*.tar")
    make_room(cache / "decoded" / "a.npy", 1)
    assert copy.exists()
    del source
    make_room(cache / "decoded" / "a.npy", 1)
    assert not copy.exists()


def test_a_decompressed_tar_that_is_removed_by_hand_can_be_read_and_is_made_again(tar: Path, tmp_path: Path) -> None:
    source = open_source(tar, cache=tmp_path / "cache")
    key, expected = cache_key(source), [source.image(number) for number in range(len(source))]
    (copy,) = (tmp_path / "cache" / "tars").glob("*.tar")
    copy.unlink()
    assert torch.equal(source.image(4), expected[4])
    other_process = pickle.loads(pickle.dumps(source))  # between our own processes, never from a file
    assert torch.equal(other_process.image(8), expected[8]) and copy.exists()
    os.utime(copy, (1, 1))
    assert cache_key(other_process) == cache_key(source) == key  # what was computed from these images stays valid


def test_another_decompressed_tar_makes_room(tar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    open_source(tar, cache=cache)
    (copy,) = (cache / "tars").glob("*.tar")
    monkeypatch.setenv("VANTAGE_CACHE_SIZE", f"{1.5 * copy.stat().st_size / 1000}KB")
    os.utime(tar, (1, 1))  # another state, another copy
    open_source(tar, cache=cache)
    (other,) = (cache / "tars").glob("*.tar")
    assert other != copy


def test_decoded_images_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE_SIZE", "300KB")  # 40 images of 32 pixels take 123 kB
    for seed in (0, 1, 0, 2):  # 0 is read once more before 2 is written
        for file in cache_files(tmp_path):  # each a minute later: times of files may have steps of 10 ms
            os.utime(file.path, (file.used - 60, file.used - 60))
        decode_all(images(40, seed=seed), cache=tmp_path)
    files = cache_files(tmp_path)
    assert len(files) == 2
    decode_all(images(40, seed=0), cache=tmp_path)
    decode_all(images(40, seed=2), cache=tmp_path)
    assert {file.path for file in cache_files(tmp_path)} == {file.path for file in files}


def test_decoded_images_leave_half_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 200_000, "total": 1 << 40}))
    assert decode_all(images(40, seed=0), cache=tmp_path).shape == (40, 3, 32, 32)
    assert cache_files(tmp_path) == []


def test_every_file_in_a_cache_is_one_of_its_files(tar: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (tmp_path / "photos").mkdir()
    for number in range(4):
        content = as_png(IMAGES[number]) if number else b"damaged"
        (tmp_path / "photos" / f"{number}.png").write_bytes(content)
    scan(open_source(tmp_path / "photos", cache=cache), cache=cache)
    decode_all(open_source(tar, cache=cache), cache=cache)
    with tarfile.open(tmp_path / "shard-0.tar", "w") as archive:
        archive.add(tmp_path / "1.png", "1.png")
    open_source(f"{tmp_path}/shard-{{0..0}}.tar", cache=cache, at_least=1)
    assert {file.path for file in cache_files(cache)} == {file for file in cache.rglob("*") if file.is_file()}
    assert {file.kind for file in cache_files(cache)} == {"listings", "scans", "tars", "decoded", "shards"}
