"""Cached features: their keys, reading in parts, resuming, and caches that cannot be used."""

import fcntl
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from counting import Counting
from tiny import cpu_work, tiny_run
from torch import Tensor

from vantage.data.sources.subset import SourceSubset
from vantage.errors import UnreadableImage
from vantage.frozen import feature_cache
from vantage.frozen.encoder import random_encoder, raw_pixels
from vantage.frozen.feature_cache import features_of
from vantage.frozen.features import embed
from vantage.recipes import moco_v2
from vantage.storage import arrays
from vantage.views.colors.statistics import Statistics


def test_the_cache_serves_the_same_encoder_and_images_only(tmp_path: Path) -> None:
    encoder, source, work = random_encoder(tiny_run()), Counting(), cpu_work(tmp_path)
    first = features_of(encoder, source, work)
    assert source.reads == 40
    assert torch.equal(features_of(encoder, source, work), first) and source.reads == 40
    other = [
        features_of(random_encoder(tiny_run(), seed=1), source, work),
        features_of(replace(encoder, view=replace(encoder.view, resize=40)), source, work),
        features_of(encoder, SourceSubset(source, range(39, -1, -1)), work),
    ]
    assert source.reads == 160 and not any(torch.equal(first, vector) for vector in other)


@dataclass(frozen=True)
class OwnSpace:
    """A color space of a user's own, which prints alike after its code was edited."""

    statistics: Statistics = Statistics((0.5, 0.5, 0.5), (0.2, 0.2, 0.2))

    def convert(self, images: Tensor) -> Tensor:
        return images


def test_an_edited_color_space_makes_other_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, source, work = random_encoder(tiny_run()), Counting(), cpu_work(tmp_path)
    encoder = replace(encoder, view=replace(encoder.view, space=OwnSpace()))
    first, pixels = features_of(encoder, source, work), raw_pixels(moco_v2(32))
    built_in, own = pixels.digest(), replace(pixels, view=encoder.view).digest()
    monkeypatch.setattr(OwnSpace, "convert", lambda space, images: images.flip(1))
    monkeypatch.setattr("vantage.composition.own_code.inspect.getsource", lambda kind: "images.flip(1)")
    assert not torch.equal(features_of(encoder, source, work), first)
    assert pixels.digest() == built_in and replace(pixels, view=encoder.view).digest() != own


def test_a_damaged_cache_is_replaced(tmp_path: Path) -> None:
    encoder, source, work = random_encoder(tiny_run()), Counting(), cpu_work(tmp_path)
    first = features_of(encoder, source, work)
    (file,) = (tmp_path / "cache" / "features").iterdir()
    file.write_bytes(file.read_bytes()[:-7])
    assert torch.equal(features_of(encoder, source, work), first) and source.reads == 80


def test_a_stopped_computation_resumes_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, work = random_encoder(tiny_run()), replace(cpu_work(tmp_path), batch_size=8)
    expected = embed(encoder, Counting(), work).vector
    plain, calls = feature_cache.batches, list[int]()

    def stopping(*arguments):
        for first, part in plain(*arguments):
            calls.append(first)
            if len(calls) == 3:
                raise KeyboardInterrupt
            yield first, part

    monkeypatch.setattr(feature_cache, "batches", stopping)
    with pytest.raises(KeyboardInterrupt):
        features_of(encoder, Counting(), work)
    (part,) = (tmp_path / "cache" / "features").glob("*.draft")
    with part.open("ab") as file:
        file.write(b"torn")
    source = Counting()
    assert torch.equal(features_of(encoder, source, work), expected)
    assert calls == [0, 8, 16, 16, 24, 32] and source.reads == 24
    (features_file,) = (tmp_path / "cache" / "features").iterdir()
    assert np.array_equal(np.load(features_file, allow_pickle=False), expected.numpy())


def test_an_unreadable_image_is_named_and_read_once(tmp_path: Path) -> None:
    source = Counting(bad=21)
    with pytest.raises(UnreadableImage, match="row 21"):
        features_of(random_encoder(tiny_run()), source, cpu_work(tmp_path))
    assert source.reads <= 40


def test_many_features_are_mapped_and_few_are_read(tmp_path: Path) -> None:
    encoder, work = random_encoder(tiny_run()), cpu_work(tmp_path)
    loaded_features, mapped_features = (
        features_of(encoder, Counting(), replace(work, resident_bytes=room)) for room in (1 << 20, 0)
    )
    assert torch.equal(loaded_features, mapped_features)
    (file,) = (tmp_path / "cache" / "features").iterdir()
    assert [str(file) in _maps_of(vector) for vector in (loaded_features, mapped_features)] == [False, True]
    mapped_features[0] = 7.0  # a private copy: the file does not change
    assert torch.equal(features_of(encoder, Counting(), work), loaded_features)


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
    encoder, work = random_encoder(tiny_run()), cpu_work(tmp_path)
    expected = embed(encoder, Counting(), work).vector
    assert torch.equal(features_of(encoder, Counting(), work), expected)
    (features_file,) = (tmp_path / "cache" / "features").iterdir()
    features_file.unlink()
    with arrays.draft_of(features_file).open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert torch.equal(features_of(encoder, Counting(), work), expected) and not features_file.exists()
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=100, total=1 << 40))
        assert torch.equal(features_of(encoder, Counting(), work), expected) and not features_file.exists()
    work_without_cache = replace(work, cache=tmp_path / "file")
    work_without_cache.cache.write_text("")
    assert torch.equal(features_of(encoder, Counting(), work_without_cache), expected)


def test_no_images_give_no_features(tmp_path: Path) -> None:
    encoder = random_encoder(tiny_run())
    for _ in range(2):
        assert features_of(encoder, SourceSubset(Counting(), []), cpu_work(tmp_path)).shape == (0, encoder.width)
