"""Embeddings in a file of any size: written batch by batch, and continued where it was broken off.

n: images   d: width of the features

Rows are appended to a draft beside the file, in the form of a plain array; a note beside it says how many of them
are safe on disk and what they are of. A draft of the same encoder, images and view is continued after its safe
rows, so the finished file has the same bytes whether or not the work was ever killed. At the end the draft is
renamed (.npy) or rewritten by row groups (.parquet).
"""

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.features import batches
from vantage.storage.cache import read_json
from vantage.storage.files import written_whole

__all__ = ["check_file", "write_embeddings"]

_SAFE_EVERY = 32
"""Batches between notes of what is safe on disk."""
_GROUP_BYTES = 32 << 20
"""Bytes of embeddings in a row group of a Parquet file, about."""


def check_file(file: Path) -> None:
    """Raises `UserError` for a file that embeddings cannot be written to: another ending, or one that exists."""
    if file.suffix.lower() not in (".parquet", ".npy"):
        raise UserError(f"embeddings cannot be written as {file.name}: end the name with .parquet or .npy")
    if file.exists():
        raise UserError(f"{file} exists already: remove it, or choose another name")


def write_embeddings(trained: FrozenEncoder, source: Source, file: Path, work: Work | None = None) -> Path:
    """Write the features of every image to `file`, in the order of the source, with bounded memory; returns `file`.

    * `.parquet`: columns `name`, `label` (the class's number; null where there is none) and `embedding` (d float32
      each); the file's own metadata hold the classes and what made it.
    * `.npy`: a float32 array (n, d), which `numpy.load(file, mmap_mode="r")` opens without reading it; beside it
      `<file>.rows.jsonl` with a line for each row: name and label.

    Killed, and called again with the same encoder, images, view and batch size, it goes on where it stopped and
    ends with the same bytes.

    Raises `UserError` for another ending, for a file that exists already, or if the disk is full (what was done is
    kept); `UnreadableImage` for an image that cannot be decoded: leave such images out first with
    `vantage.data.readable`.
    """
    work = work or Work()
    check_file(file)
    facts = {
        "encoder": trained.digest(),
        "checkpoint": str(trained.checkpoint.name) if trained.checkpoint else trained.name,
        "images": source.fingerprint(),
        "view": repr(trained.view),
        "shape": [len(source), trained.width],
        "batch": work.batch_size,
        "device": work.resolved_device().type,
    }
    draft = file.with_name(file.name + ".draft")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _fill(draft, facts, trained, source, work)
        if file.suffix.lower() == ".npy":
            _write_rows(file.with_name(file.name + ".rows.jsonl"), source)
            os.replace(draft, file)
        else:
            _write_parquet(file, draft, facts, source)
            draft.unlink()
        _note(draft).unlink(missing_ok=True)
    except OSError as problem:
        raise UserError(
            f"embeddings could not be written to {file}: {problem.strerror or problem}. What was done is kept in"
            f" {draft.name}: make room and run the same again"
        ) from problem
    return file


def _note(draft: Path) -> Path:
    return draft.with_name(draft.name + ".json")


def _fill(draft: Path, facts: dict[str, Any], trained: FrozenEncoder, source: Source, work: Work) -> None:
    """Append rows to the draft until it holds all of them."""
    row_bytes = 4 * trained.width
    header = _header(facts["shape"])
    safe = _safe_rows(draft, facts)
    with draft.open("r+b" if safe else "wb") as rows:
        if not safe:
            rows.write(header)
        rows.truncate(len(header) + safe * row_bytes)  # what was appended after the last note may be torn
        rows.seek(0, os.SEEK_END)
        done = safe
        for number, (start, part) in enumerate(batches(trained, source, work, safe)):
            rows.write(part.contiguous().numpy().data)
            done = start + len(part)
            if (number + 1) % _SAFE_EVERY == 0:
                _keep(rows, draft, facts, done)
        _keep(rows, draft, facts, done)


def _keep(rows: IO[bytes], draft: Path, facts: dict[str, Any], done: int) -> None:
    """Flush the rows to disk, then note that they are there."""
    rows.flush()
    os.fsync(rows.fileno())
    with written_whole(_note(draft)) as note:
        note.write(json.dumps({**facts, "rows": done}).encode())


def _safe_rows(draft: Path, facts: dict[str, Any]) -> int:
    """How many rows of a draft of the same embeddings are safe; 0 where there is no such draft."""
    note = read_json(_note(draft))
    if not isinstance(note, dict) or not draft.is_file():
        return 0
    rows = note.pop("rows", 0)
    if note != facts or draft.stat().st_size < len(_header(facts["shape"])) + rows * 4 * facts["shape"][1]:
        return 0
    return int(rows)


def _header(shape: list[int]) -> bytes:
    """What precedes the rows of a float32 array in an .npy file."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": tuple(shape)})
    return header.getvalue()


def _write_rows(file: Path, source: Source) -> None:
    with written_whole(file) as rows:
        for number in range(len(source)):
            row = {"name": _text(source.name(number)), "label": source.label(number)}
            rows.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _write_parquet(file: Path, draft: Path, facts: dict[str, Any], source: Source) -> None:
    count, width = facts["shape"]
    embedding = pa.list_(pa.field("element", pa.float32(), nullable=False), width)
    fields = [("name", pa.string()), ("label", pa.int32()), ("embedding", embedding)]
    metadata = {"vantage": json.dumps({**facts, "classes": list(source.classes)})}
    schema = pa.schema([pa.field(*each) for each in fields], metadata=metadata)
    group = max(1, _GROUP_BYTES // (4 * width))
    with written_whole(file) as whole, pq.ParquetWriter(whole, schema, use_dictionary=False) as writer:
        for start, rows in _groups(draft, count, group):
            numbers = range(start, start + len(rows))
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), type=embedding)
            names = pa.array([_text(source.name(number)) for number in numbers], pa.string())
            labels = pa.array([source.label(number) for number in numbers], pa.int32())
            writer.write_table(pa.Table.from_arrays([names, labels, vectors], schema=schema), row_group_size=group)


def _groups(draft: Path, count: int, group: int) -> Iterator[tuple[int, "np.ndarray"]]:
    """First number and rows of each row group."""
    with draft.open("rb") as file:  # read, not mapped: mapped pages would count as memory in use
        np.lib.format.read_magic(file)
        (_, width), _, _ = np.lib.format.read_array_header_1_0(file)
        for start in range(0, count, group):
            rows = min(group, count - start)
            yield start, np.fromfile(file, dtype="<f4", count=rows * width).reshape(rows, width)


def _text(name: str) -> str:
    """A file's name with what is no UTF-8 in it replaced, for neither JSON nor Parquet could hold it."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
