"""Embeddings in parts: one table for other libraries, written by any number of processes, continued part by part."""

import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from tiny import cpu_work, images, tiny_run

from vantage import processes
from vantage.errors import UserError
from vantage.frozen import embedding_parts
from vantage.frozen.embedding_parts import check_folder, write_embedding_parts
from vantage.frozen.encoder import FrozenEncoder, random_encoder
from vantage.frozen.features import embed

COUNT, PART = 50, 16


@pytest.fixture(scope="module")
def encoder() -> FrozenEncoder:
    return random_encoder(tiny_run())


def write_parts(encoder: FrozenEncoder, tmp_path: Path, name: str = "parts", size: int = PART) -> Path:
    return write_embedding_parts(encoder, images(COUNT, seed=0), tmp_path / name, cpu_work(tmp_path, batch=8), size)


def test_parts_are_one_table(encoder: FrozenEncoder, tmp_path: Path) -> None:
    folder = write_parts(encoder, tmp_path)
    assert sorted(file.name for file in folder.iterdir()) == [f"part-{n:05d}-of-00004.parquet" for n in range(4)]
    assert [file.name for file in tmp_path.iterdir() if "parts" in file.name] == ["parts"]
    table, expected = pq.read_table(folder), embed(encoder, images(COUNT, seed=0), cpu_work(tmp_path, batch=8))
    assert table.column("name").to_pylist() == list(expected.name)
    assert table.column("label").to_pylist() == expected.label.tolist()
    vectors = np.array(table.column("embedding").to_pylist(), np.float32)
    np.testing.assert_allclose(vectors, expected.vector.numpy(), rtol=1e-5, atol=1e-6)


def test_other_libraries_read_them(encoder: FrozenEncoder, tmp_path: Path) -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    folder = write_parts(encoder, tmp_path)
    expected = pq.read_table(folder).column("name").to_pylist()
    assert polars.scan_parquet(folder).collect()["name"].to_list() == expected
    assert duckdb.sql(f"select count(*) from '{folder}/*.parquet'").fetchall() == [(COUNT,)]


@pytest.mark.slow
def test_spark_reads_them(encoder: FrozenEncoder, tmp_path: Path) -> None:
    """Where pyspark and Java are installed, which the tests do not ask for: together they are larger than all else."""
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    folder = write_parts(encoder, tmp_path)
    expected = pq.read_table(folder)
    settings = {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    settings["spark.sql.warehouse.dir"] = str(tmp_path / "warehouse")
    session = sql.SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    try:
        rows = session.read.parquet(str(folder)).orderBy("name").collect()
    finally:
        session.stop()
    assert [row.name for row in rows] == sorted(expected.column("name").to_pylist())
    by_name = dict(zip(*(expected.column(name).to_pylist() for name in ("name", "embedding")), strict=True))
    assert all(row.embedding == by_name[row.name] for row in rows)


def test_processes_write_the_same_bytes_in_turn(
    encoder: FrozenEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = write_parts(encoder, tmp_path, "alone")
    monkeypatch.setattr(processes, "count", lambda: 3)
    for rank, own in ((1, ["1"]), (0, ["0", "1", "3"]), (2, ["0", "1", "2", "3"])):
        monkeypatch.setattr(processes, "rank", lambda rank=rank: rank)
        together = write_parts(encoder, tmp_path, "together")
        assert sorted(file.name[9] for file in together.iterdir()) == own
    for file in alone.iterdir():
        assert file.read_bytes() == (together / file.name).read_bytes()


def test_a_stopped_run_goes_on_within_a_part(
    encoder: FrozenEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, source = write_parts(encoder, tmp_path, "alone"), images(COUNT, seed=0)
    numbers_read: list[int] = []
    whole = type(source).image

    def stopping(self: object, number: int) -> torch.Tensor:
        if number == 44 and len(numbers_read) < COUNT:
            raise KeyboardInterrupt
        numbers_read.append(number)
        return whole(self, number)  # type: ignore[arg-type]

    monkeypatch.setattr(type(source), "image", stopping)
    with pytest.raises(KeyboardInterrupt):
        write_parts(encoder, tmp_path)
    assert len(list((tmp_path / "parts").iterdir())) == 2
    monkeypatch.setattr(type(source), "image", whole)
    before = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "parts").iterdir()}
    for file in write_parts(encoder, tmp_path).iterdir():
        assert file.read_bytes() == (alone / file.name).read_bytes()
        assert before.get(file.name, file.stat().st_mtime_ns) == file.stat().st_mtime_ns
    assert not (tmp_path / "parts.drafts").exists()


def test_a_draft_of_a_part_that_is_written_is_removed(
    encoder: FrozenEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is as large as the part; a process that is killed before its last step leaves it."""
    with monkeypatch.context() as patch:
        patch.setattr(embedding_parts, "remove_draft", lambda _: None)
        write_parts(encoder, tmp_path)
    assert len(list((tmp_path / "parts.drafts").iterdir())) == 8, "a draft and its note for each part"
    write_parts(encoder, tmp_path)
    assert [file.name for file in tmp_path.iterdir() if "parts" in file.name] == ["parts"]


@pytest.mark.parametrize("path", [".", "..", "/", "here/.."])
def test_a_path_without_a_name_is_refused(path: str) -> None:
    with pytest.raises(UserError, match="does not name a folder for the parts of the embeddings"):
        check_folder(Path(path))


def test_folders_of_something_else_are_refused(encoder: FrozenEncoder, tmp_path: Path) -> None:
    folder = write_parts(encoder, tmp_path)
    with pytest.raises(UserError, match="holds part-00000-of-00004.parquet, which is not a part of these embeddings"):
        write_parts(encoder, tmp_path, size=10)
    other = random_encoder(tiny_run(), seed=1)
    with pytest.raises(UserError, match="part-00000-of-00004.parquet is not what this encoder makes"):
        write_parts(other, tmp_path)
    part = folder / "part-00000-of-00004.parquet"
    whole = part.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little")  # Arrow reports damage there by an OSError
    for content in (b"damaged", whole[: -8 - footer] + b"\xff" * footer + whole[-8:]):
        part.write_bytes(content)
        with pytest.raises(UserError, match="part-00000-of-00004.parquet is not what this encoder makes"):
            write_parts(encoder, tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserError, match="file is a file: name a folder"):
        write_parts(encoder, tmp_path, "file")
    with pytest.raises(UserError, match="part_images is 0"):
        write_parts(encoder, tmp_path, "new", size=0)


def test_a_full_disk_keeps_finished_parts(
    encoder: FrozenEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Path] = []
    write = embedding_parts.write_parquet

    def full(file: Path, *rest: object) -> None:
        calls.append(file)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        write(file, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(embedding_parts, "write_parquet", full)
    with pytest.raises(UserError, match="part-00002-of-00004.parquet could not be written .*: No space left on device"):
        write_parts(encoder, tmp_path)
    assert len(list((tmp_path / "parts").iterdir())) == 2
    assert len(list(write_parts(encoder, tmp_path).iterdir())) == 4
