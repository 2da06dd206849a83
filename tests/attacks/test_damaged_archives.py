"""Archives that are damaged, that become larger than they look, or that change while they are read.

Damaged images are in `tests/data/test_decode.py`.
"""

import json
import os
import shutil
import tarfile
import zipfile
from collections import namedtuple
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from good_files import tar
from tar_shards import png

from vantage.data import Parquet, open_source
from vantage.data.sources import parquet
from vantage.errors import DataError

MIB = 1 << 20


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def headers(content: bytes) -> list[int]:
    return [at for at in range(0, len(content), 512) if content[at + 257 : at + 262] == b"ustar"]


@pytest.mark.parametrize("name", ["a.tar", "{a.tar,a.tar}"])
@pytest.mark.parametrize("damage", ["checksum", "zeros", "joined", "cut"])
def test_a_tar_that_would_end_too_early_is_refused(name: str, damage: str, tmp_path: Path, cache: Path) -> None:
    """`tarfile` stops without a word at each of these, and the images behind are lost."""
    content = bytearray(tar())
    third = headers(bytes(content))[6]
    if damage == "checksum":
        content[third + 150] ^= 1
    elif damage == "zeros":
        content[third : third + 512] = bytes(512)
    elif damage == "joined":
        content += tar()
    else:
        del content[third + 300 :]
    (tmp_path / "a.tar").write_bytes(content)
    message = {"zeros": "more follows", "joined": "more follows", "cut": "cut short in the header"}
    with pytest.raises(DataError, match=message.get(damage, "there is no header at byte")):
        open_source(tmp_path / name, cache=cache)


def test_a_tar_without_the_zeros_at_its_end_is_whole(tmp_path: Path, cache: Path) -> None:
    whole = tar()
    (tmp_path / "a.tar").write_bytes(whole)
    with tarfile.open(tmp_path / "a.tar") as members:
        last = members.getmembers()[-1]
    (tmp_path / "b.tar").write_bytes(whole[: last.offset_data + -(-last.size // 512) * 512])
    assert len(open_source(tmp_path / "b.tar", cache=cache)) == len(open_source(tmp_path / "a.tar", cache=cache)) == 5


def test_an_index_of_a_tar_that_is_damaged_is_made_anew(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "a.tar").write_bytes(tar())
    names = [open_source(tmp_path / "a.tar", cache=cache).name(number) for number in range(5)]
    (file,) = (cache / "tars").iterdir()
    good = file.read_bytes()
    for position in range(0, len(good), 7):
        file.write_bytes(good[:position] + bytes([good[position] ^ 1]) + good[position + 1 :])
        again = open_source(tmp_path / "a.tar", cache=cache)
        assert [again.name(number) for number in range(5)] == names and file.read_bytes() == good


def test_files_that_change_while_they_are_used_are_named(tmp_path: Path, cache: Path) -> None:
    """In place, where a mapped file that became shorter would end the process."""
    (tmp_path / "a.tar").write_bytes(tar())
    np.save(tmp_path / "a.npy", np.zeros((64, 40, 40, 3), np.uint8))
    cells = [{"bytes": png(number), "path": "a.png"} for number in range(40)]
    pq.write_table(pa.table({"image": cells}), tmp_path / "a.parquet", row_group_size=1)
    for name in ("a.tar", "a.npy", "a.parquet"):
        source = open_source(tmp_path / name, cache=cache)
        source.image(0)
        os.truncate(tmp_path / name, 600)
        with pytest.raises(DataError, match=f"{name} changed while it was in use"):
            source.image(len(source) - 1)
        (tmp_path / name).unlink()
        with pytest.raises(DataError, match=f"{name} disappeared while it was in use"):
            source.image(len(source) - 2)


def test_a_packed_tar_leaves_room_on_the_disk(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "big").write_bytes(bytes(8 << 20))
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "big")
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10 << 20, 5 << 20, 5 << 20))
    with pytest.raises(DataError, match="cannot decompress .*No space left on device"):
        open_source(tmp_path / "a.tar.gz", cache=cache)
    assert list((cache / "tars").iterdir()) == []


def test_an_array_that_is_unpacked_to_more_than_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "a.npz", images=np.zeros((100, 100, 100), np.uint8))
    assert zipfile.ZipFile(tmp_path / "a.npz").infolist()[0].compress_size < 10_000
    monkeypatch.setattr(os, "sysconf", lambda name: 1000)  # a page of 1000 bytes, a thousand times
    with pytest.raises(DataError, match="images.npy of .* more than this machine's memory"):
        open_source(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("labels", "message"), [([0, 2**40], "a label of .* is 1099511627776"), ([0, 1.5], "neither integers nor words")]
)
def test_labels_of_a_table_that_are_no_classes(labels: list[object], message: str, tmp_path: Path, cache: Path) -> None:
    pq.write_table(pa.table({"image": [png(0), png(1)], "label": labels}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=message):
        open_source(tmp_path / "a.parquet", cache=cache)


def test_a_label_beyond_the_names_of_the_classes(tmp_path: Path, cache: Path) -> None:
    metadata = json.dumps({"info": {"features": {"label": {"names": ["cat", "dog"]}}}})
    table = pa.table({"image": [png(0), png(1)], "label": [1, 2]}).replace_schema_metadata({"huggingface": metadata})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match="a label of .* is 2: classes are numbered from 0 to 1"):
        open_source(tmp_path / "a.parquet", cache=cache)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            [bytes([n]) * MIB for n in range(20)],
            "the row group 0 of .* unpacked, more than a quarter of this machine's",
        ),
        ([bytes(2 * MIB)] * 200, "the column image of .* a fixed share of this machine's memory"),
    ],
    ids=["many zeros", "one value again and again"],
)
def test_a_row_group_that_is_unpacked_to_more_than_the_memory(
    cells: list[bytes], message: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a machine with 64 MiB."""
    monkeypatch.setattr(parquet, "memory_of", lambda device: 64 * MIB)
    table = pa.table({"image": pa.array(cells, pa.binary())})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", dictionary_pagesize_limit=4 * MIB)
    assert (tmp_path / "a.parquet").stat().st_size < MIB
    before = pa.total_allocated_bytes()
    with pytest.raises(DataError, match=message):
        open_source(tmp_path / "a.parquet", cache=cache).image(0)
    assert pa.total_allocated_bytes() - before < 20 * MIB


def test_labels_that_are_unpacked_to_more_than_the_memory(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "memory_of", lambda device: 64 * MIB)
    words = pa.table({"image": [png(0)] * 100, "label": ["x" * MIB] * 100})
    pq.write_table(words, tmp_path / "words.parquet", compression="zstd")
    numbers = pa.table({"image": pa.nulls(MIB, pa.binary()), "label": pa.array(np.zeros(MIB, bool))})
    pq.write_table(numbers, tmp_path / "rows.parquet")
    with pytest.raises(DataError, match="the column label of .* takes more than 0.0 GiB"):
        open_source(tmp_path / "words.parquet", cache=cache)
    with pytest.raises(DataError, match="states 1,048,576 rows, whose labels take more than a quarter"):
        open_source(tmp_path / "rows.parquet", cache=cache)


def test_row_groups_in_memory_take_a_quarter_of_it(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "memory_of", lambda device: 64 * MIB)
    chance = np.random.default_rng(0)
    table = pa.table({"image": pa.array([chance.bytes(5 * MIB) for _ in range(8)], pa.binary())})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    source = Parquet((tmp_path / "a.parquet",))
    assert [len(source.file_bytes(number)) for number in range(8)] == [5 * MIB] * 8
    assert sum(group.nbytes for group in source._groups.values()) <= 16 * MIB
