"""Cached features: their keys, reading in parts, resuming, and caches that cannot be used."""

import fcntl
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from counting import Counting
from tiny import tiny_run, work
from torch import Tensor

from vantage.data.sources.source import SourceSubset
from vantage.errors import UnreadableImage
from vantage.frozen import feature_cache
from vantage.frozen.encoder import random_encoder
from vantage.frozen.feature_cache import features_of
from vantage.frozen.features import embed
from vantage.storage import arrays


def test_the_cache_serves_the_same_encoder_and_images_only(tmp_path: Path) -> None:
    trained, source, here = random_encoder(tiny_run()), Counting(), work(tmp_path)
    first = features_of(trained, source, here)
    assert source.reads == 40
    assert torch.equal(features_of(trained, source, here), first) and source.reads == 40
    other = [
        features_of(random_encoder(tiny_run(), seed=1), source, here),
        features_of(replace(trained, view=replace(trained.view, resize=40)), source, here),
        features_of(trained, SourceSubset(source, range(39, -1, -1)), here),
    ]
    assert source.reads == 160 and not any(torch.equal(first, vector) for vector in other)


def test_a_damaged_cache_is_replaced(tmp_path: Path) -> None:
    trained, source, here = random_encoder(tiny_run()), Counting(), work(tmp_path)
    first = features_of(trained, source, here)
    (kept,) = (tmp_path / "cache" / "features").iterdir()
    kept.write_bytes(kept.read_bytes()[:-7])
    assert torch.equal(features_of(trained, source, here), first) and source.reads == 80


def test_a_stopped_computation_resumes_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained, here = random_encoder(tiny_run()), replace(work(tmp_path), batch_size=8)
    expected = embed(trained, Counting(), here).vector
    plain, calls = feature_cache.batches, list[int]()

    def stopping(*arguments):
        for first, part in plain(*arguments):
            calls.append(first)
            if len(calls) == 3:
                raise KeyboardInterrupt
            yield first, part

    monkeypatch.setattr(feature_cache, "batches", stopping)
    with pytest.raises(KeyboardInterrupt):
        features_of(trained, Counting(), here)
    (part,) = (tmp_path / "cache" / "features").glob("*.draft")
    with part.open("ab") as file:
        file.write(b"torn")
    source = Counting()
    assert torch.equal(features_of(trained, source, here), expected)
    assert calls == [0, 8, 16, 16, 24, 32] and source.reads == 24
    (kept,) = (tmp_path / "cache" / "features").iterdir()
    assert np.array_equal(np.load(kept, allow_pickle=False), expected.numpy())


def test_an_unreadable_image_is_named_and_read_once(tmp_path: Path) -> None:
    source = Counting(bad=21)
    with pytest.raises(UnreadableImage, match="row 21"):
        features_of(random_encoder(tiny_run()), source, work(tmp_path))
    assert source.reads <= 40


def test_many_features_are_mapped_and_few_are_read(tmp_path: Path) -> None:
    trained, here = random_encoder(tiny_run()), work(tmp_path)
    held, mapped = (features_of(trained, Counting(), replace(here, resident_bytes=room)) for room in (1 << 20, 0))
    assert torch.equal(held, mapped)
    (kept,) = (tmp_path / "cache" / "features").iterdir()
    assert [str(kept) in _maps_of(vector) for vector in (held, mapped)] == [False, True]
    mapped[0] = 7.0  # a copy of one's own: the file stays as it is
    assert torch.equal(features_of(trained, Counting(), here), held)


def _maps_of(vector: Tensor) -> str:
    """The line of the process's memory map that covers a tensor's numbers (Linux)."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("the map of memory is read from /proc")
    for line in maps.read_text().splitlines():
        first, last = (int(edge, 16) for edge in line.split()[0].split("-"))
        if first <= vector.data_ptr() < last:
            return line
    return ""


def test_features_that_cannot_be_cached_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process fills the same file; the disk is nearly full; the cache is a file."""
    trained, here = random_encoder(tiny_run()), work(tmp_path)
    expected = embed(trained, Counting(), here).vector
    assert torch.equal(features_of(trained, Counting(), here), expected)
    (kept,) = (tmp_path / "cache" / "features").iterdir()
    kept.unlink()
    with arrays.draft_of(kept).open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert torch.equal(features_of(trained, Counting(), here), expected) and not kept.exists()
    with monkeypatch.context() as patch:
        patch.setattr(arrays.shutil, "disk_usage", lambda place: type("Usage", (), {"free": 100}))
        assert torch.equal(features_of(trained, Counting(), here), expected) and not kept.exists()
    blocked = replace(here, cache=tmp_path / "file")
    blocked.cache.write_text("")
    assert torch.equal(features_of(trained, Counting(), blocked), expected)


def test_no_images_give_no_features(tmp_path: Path) -> None:
    trained = random_encoder(tiny_run())
    for _ in range(2):
        assert features_of(trained, SourceSubset(Counting(), []), work(tmp_path)).shape == (0, trained.width)
