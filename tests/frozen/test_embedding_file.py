"""Embedding files: readable by other libraries, and continued to the same bytes after a kill."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from tiny import cpu_work, images, saved_run, tiny_run

from vantage.data import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen import embedding as embedding_file
from vantage.frozen.embedding import write_embeddings
from vantage.frozen.encoder import FrozenEncoder, load, random_encoder
from vantage.frozen.features import embed

COUNT = 100


@pytest.fixture
def encoder() -> FrozenEncoder:
    return random_encoder(tiny_run())


def test_parquet_holds_name_label_and_vector(encoder: FrozenEncoder, tmp_path: Path) -> None:
    source, work = images(COUNT, seed=0), cpu_work(tmp_path)
    file = write_embeddings(encoder, source, tmp_path / "out" / "rows.parquet", work)
    table = pq.read_table(file)
    embedding = embed(encoder, source, work)
    assert table.column("name").to_pylist() == list(embedding.name)
    assert table.column("label").to_pylist() == embedding.label.tolist()
    assert np.array_equal(np.array(table.column("embedding").to_pylist(), np.float32), embedding.vector.numpy())
    assert str(table.schema.field("embedding").type) == "fixed_size_list<element: float not null>[12]"
    facts = json.loads(table.schema.metadata[b"vantage"])
    assert facts["classes"] == ["0", "1", "2"] and facts["encoder"] == encoder.digest()
    assert [path.name for path in file.parent.iterdir()] == ["rows.parquet"]


def test_parquet_is_written_in_row_groups(
    encoder: FrozenEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_file, "_GROUP_BYTES", 4 * 12 * 30)
    source, work = images(COUNT, seed=0), cpu_work(tmp_path)
    file = pq.ParquetFile(write_embeddings(encoder, source, tmp_path / "rows.parquet", work))
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [30, 30, 30, 10]
    vectors = np.array(file.read().column("embedding").to_pylist(), np.float32)
    assert np.array_equal(vectors, embed(encoder, source, work).vector.numpy())


def test_npy_holds_vectors_and_rows(encoder: FrozenEncoder, tmp_path: Path) -> None:
    source, work = images(COUNT, seed=0), cpu_work(tmp_path)
    file = write_embeddings(encoder, source, tmp_path / "rows.npy", work)
    assert np.array_equal(np.load(file, mmap_mode="r"), embed(encoder, source, work).vector.numpy())
    rows = [json.loads(line) for line in (tmp_path / "rows.npy.rows.jsonl").read_text().splitlines()]
    assert rows == [{"name": f"row {number}", "label": number % 3} for number in range(COUNT)]
    assert sorted(path.name for path in tmp_path.glob("rows*")) == ["rows.npy", "rows.npy.rows.jsonl"]


KILLED_PROGRAM = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tiny import cpu_work, images
import vantage
from vantage.frozen.embedding import write_embeddings
from vantage.frozen.encoder import load
from vantage.storage import arrays

arrays._SAFE_SECONDS = 0.0
folder, source, reads = Path(sys.argv[2]), images(100, seed=0), 0
class Dying:
    classes, label, name, fingerprint = source.classes, source.label, source.name, source.fingerprint
    def __len__(self): return len(source)
    def image(self, number):
        if number == 92:
            os.kill(os.getpid(), signal.SIGKILL)
        return source.image(number)
with vantage.allowing("tiny"):
    write_embeddings(load(folder), Dying(), folder / sys.argv[3], cpu_work(folder, batch=8))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rows.npy", "rows.parquet"])
def test_a_killed_process_is_continued_with_the_same_bytes(name: str, tmp_path: Path) -> None:
    saved_run(tmp_path, tiny_run())
    process = subprocess.run(
        [sys.executable, "-c", KILLED_PROGRAM, str(Path(__file__).parents[1] / "support"), str(tmp_path), name]
    )
    assert process.returncode == -signal.SIGKILL and not (tmp_path / name).exists()
    draft = tmp_path / f"{name}.draft"
    note = json.loads((tmp_path / f"{name}.draft.json").read_text())
    assert 16 <= note["rows"] < 92 and note["rows"] % 8 == 0
    with draft.open("ab") as rows:  # what a torn write would leave
        rows.write(b"torn")
    frozen_encoder, source = load(tmp_path), images(100, seed=0)
    numbers_read: list[int] = []
    whole = type(source).image

    def count_reads(self: object, number: int) -> torch.Tensor:
        numbers_read.append(number)
        return whole(self, number)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(source), "image", count_reads)
        file = write_embeddings(frozen_encoder, source, tmp_path / name, cpu_work(tmp_path, batch=8))
    assert sorted(numbers_read) == list(range(note["rows"], 100))
    straight = write_embeddings(frozen_encoder, source, tmp_path / f"straight-{name}", cpu_work(tmp_path, batch=8))
    assert file.read_bytes() == straight.read_bytes()
    assert not draft.exists() and not draft.with_name(draft.name + ".json").exists()


@pytest.mark.parametrize("step", ["_write_rows", "write_parquet"])
def test_another_that_starts_while_a_full_draft_becomes_the_file_is_refused(
    step: str, encoder: FrozenEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, work, last_step = images(COUNT, seed=0), cpu_work(tmp_path), getattr(embedding_file, step)
    file = tmp_path / ("rows.npy" if step == "_write_rows" else "rows.parquet")

    def start_another(*arguments: object) -> None:
        monkeypatch.setattr(embedding_file, step, last_step)
        with pytest.raises(UserError, match=r"another process is writing it\. .*Wait until it ends, or choose another"):
            write_embeddings(encoder, images(COUNT, seed=1), file, work)
        last_step(*arguments)

    monkeypatch.setattr(embedding_file, step, start_another)
    write_embeddings(encoder, source, file, work)
    straight = write_embeddings(encoder, source, tmp_path / f"straight-{file.name}", work)
    assert file.read_bytes() == straight.read_bytes() and not list(tmp_path.glob("*.draft*"))


def test_without_locks_two_could_fill_one_draft_so_another_folder_is_asked_for(
    encoder: FrozenEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("vantage.storage.arrays.fcntl.flock", no_locks)
    with pytest.raises(UserError, match="No locks available.* Choose a folder whose file system has locks"):
        write_embeddings(encoder, images(COUNT, seed=0), tmp_path / "rows.npy", cpu_work(tmp_path))


def test_a_draft_of_something_else_is_not_continued(encoder: FrozenEncoder, tmp_path: Path) -> None:
    source, work = images(COUNT, seed=0), cpu_work(tmp_path)
    file = tmp_path / "rows.npy"
    (tmp_path / "rows.npy.draft").write_bytes(b"x" * 10_000)
    (tmp_path / "rows.npy.draft.json").write_text(json.dumps({"encoder": "another", "rows": 50}))
    write_embeddings(encoder, source, file, work)
    assert np.array_equal(np.load(file), embed(encoder, source, work).vector.numpy())


def test_memory_holds_a_few_batches(encoder: FrozenEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    empty = torch.empty

    def record_size(*size: int, **settings: object) -> torch.Tensor:
        tensor = empty(*size, **settings)  # type: ignore[call-overload]
        sizes.append(tensor.numel())
        return tensor

    monkeypatch.setattr(torch, "empty", record_size)
    write_embeddings(encoder, images(COUNT, seed=0), tmp_path / "rows.npy", cpu_work(tmp_path, batch=10))
    assert max(sizes, default=0) < COUNT * 12


def test_unsuitable_files_are_refused(encoder: FrozenEncoder, tmp_path: Path) -> None:
    source, work = images(10, seed=0), cpu_work(tmp_path)
    with pytest.raises(UserError, match="end the name with .parquet or .npy"):
        write_embeddings(encoder, source, tmp_path / "rows.csv", work)
    (tmp_path / "rows.npy").write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        write_embeddings(encoder, source, tmp_path / "rows.npy", work)
    assert (tmp_path / "rows.npy").read_text() == "mine"


def test_a_full_disk_keeps_finished_rows(
    encoder: FrozenEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    source, work = images(COUNT, seed=0), cpu_work(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(UserError, match="No space left on device"):
            write_embeddings(encoder, source, tmp_path / "rows.npy", work)
    assert not (tmp_path / "rows.npy").exists() and (tmp_path / "rows.npy.draft").exists()
    write_embeddings(encoder, source, tmp_path / "rows.npy", work)
    assert np.array_equal(np.load(tmp_path / "rows.npy"), embed(encoder, source, work).vector.numpy())


def _write_until_killed(encoder: FrozenEncoder, source: Source, file: Path, work: Work) -> None:
    """Write as a process does that is killed before it removes what is left of the draft."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding_file, "finish", lambda draft, file: draft.replace(file))
        patch.setattr(embedding_file, "remove_draft", lambda _: None)
        write_embeddings(encoder, source, file, work)


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
def test_a_process_killed_when_the_file_was_there_is_tidied_up_by_the_same_call(
    ending: str, encoder: FrozenEncoder, tmp_path: Path
) -> None:
    source, work, file = images(COUNT, seed=0), cpu_work(tmp_path), tmp_path / f"rows{ending}"
    _write_until_killed(encoder, source, file, work)
    whole, names = file.read_bytes(), {path.name for path in tmp_path.glob("rows*") if ".draft" not in path.name}
    assert (tmp_path / f"rows{ending}.draft.json").exists()
    with pytest.raises(UserError, match="exists already"):
        write_embeddings(encoder, images(COUNT, seed=1), file, work)  # other images
    assert write_embeddings(encoder, source, file, work) == file and file.read_bytes() == whole
    assert {path.name for path in tmp_path.glob("rows*")} == names
    with pytest.raises(UserError, match="exists already"):
        write_embeddings(encoder, source, file, work)


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
def test_a_file_of_the_user_beside_a_full_draft_stays(ending: str, encoder: FrozenEncoder, tmp_path: Path) -> None:
    source, work, file = images(COUNT, seed=0), cpu_work(tmp_path), tmp_path / f"rows{ending}"
    _write_until_killed(encoder, source, file, work)
    file.write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        write_embeddings(encoder, source, file, work)
    assert file.read_text() == "mine"
