"""Embeddings in a file of any size, written batch by batch; a stopped run continues.

n: images   d: width of the features

Rows are appended to a draft beside the file, a plain array (`vantage.storage.arrays`). At the end the draft is renamed
(.npy) or rewritten by row groups (.parquet).
"""

import json
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from vantage.data.sources.names import text_of
from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.features import batches
from vantage.machine.usual_torch import usual_torch
from vantage.processes.sharing import by_first, true_on_all, write_on_first
from vantage.storage.arrays import draft_of, filled, finish, note_is_left, remove_draft
from vantage.storage.files import atomic_file, not_written, remedy
from vantage.storage.rows_file import RowsFile, open_rows

__all__ = ["check_file", "facts_of", "holds", "write_embeddings", "write_parquet"]

_GROUP_BYTES = 32 << 20
"""Approximate bytes of embeddings in a row group of a Parquet file."""


def check_file(file: Path) -> None:
    """Raises `UserError` for a file that embeddings cannot be written to: one of another format, or one that exists,
    unless a process that was killed at its very end left the note of a draft beside it."""
    if file.suffix.lower() not in (".parquet", ".npy"):
        raise UserError(
            f"embeddings cannot be written as {file.name}: end the name with .parquet or .npy (or leave the ending out,"
            " for a folder of parts)"
        )
    if file.exists() and not note_is_left(draft_of(file)):
        raise _exists_already(file)


def _exists_already(file: Path) -> UserError:
    return UserError(f"{file} exists already: remove it, or choose another name")


@usual_torch()
def write_embeddings(encoder: FrozenEncoder, source: Source, file: Path | str, work: Work | None = None) -> Path:
    """Write the features of every image to `file`, in the order of the source, with bounded memory; returns `file`.

    * `.parquet`: columns `name`, `label` (the class's number; null if there is none) and `embedding` (d float32
      each); the file's metadata hold the classes, the encoder, the images and the view.
    * `.npy`: a float32 array (n, d), which `numpy.load(file, mmap_mode="r")` opens without reading it; beside it
      `<file>.rows.jsonl` with a line for each row: name and label.

    If killed, and called again with the same encoder, images, view and batch size, it continues where it stopped and
    ends with the same bytes. Raises `UserError` for another ending, for a file that exists already, or if the disk is
    full (finished rows are kept); `UnreadableImage` for an image that cannot be decoded: leave such images out first
    with `vantage.data.readable`. All processes must call this: they share the images, and the first writes the file.
    """
    work, file = work or Work(), Path(file)
    check_file(file)
    facts, draft = facts_of(encoder, source, work), draft_of(file)
    if not true_on_all(not file.exists()):  # all have checked it before the first removes the note
        by_first(lambda: _clean_up(file, facts, (len(source), encoder.width)))
        return file

    def parts(start: int) -> Generator[Tensor, None, None]:
        return (part for _, part in batches(encoder, source, work, start))

    def write(parts: Callable[[int], Iterator[Tensor]]) -> None:
        with filled(draft, (len(source), encoder.width), torch.float32, facts, parts):
            if file.suffix.lower() == ".npy":
                _write_rows(file.with_name(file.name + ".rows.jsonl"), source)
                finish(draft, file)
            else:
                write_parquet(file, RowsFile(draft, len(source)), facts, source)
                remove_draft(draft)

    try:
        write_on_first(write, parts)
    except OSError as problem:
        kept = f"Finished rows are kept in {draft.name}, and the same command goes on from them. "
        then = kept * draft.exists() + remedy(problem)
        raise not_written("embeddings", file, problem, then) from problem
    return file


def facts_of(encoder: FrozenEncoder, source: Source, work: Work) -> dict[str, Any]:
    """Everything that the embeddings depend on."""
    return {
        "encoder": encoder.digest(),
        "checkpoint": encoder.checkpoint.name if encoder.checkpoint else encoder.name,
        "images": source.fingerprint(),
        "view": repr(encoder.view),
        "batch": work.batch_size,
        "device": work.resolved_device().type,
    }


def _clean_up(file: Path, facts: dict[str, Any], shape: tuple[int, int]) -> None:
    """Remove the draft of a file that a process finished just before it was killed. Raises `UserError` if the file is
    another one."""
    draft = draft_of(file)
    if file.suffix.lower() == ".npy":
        rows = None if draft.exists() else open_rows(file, shape[0])  # the draft becomes the file
        is_whole = rows is not None and rows.row == shape[1:]
    else:
        is_whole = holds(file, facts)
    if not is_whole or not note_is_left(draft, {**facts, "shape": list(shape)}):
        raise _exists_already(file)
    remove_draft(draft)


def holds(file: Path, facts: dict[str, Any]) -> bool:
    """Whether a Parquet file holds the embeddings with these facts, according to its metadata."""
    try:
        metadata = json.loads((pq.read_schema(file).metadata or {}).get(b"vantage", b"null"))
    except (pa.ArrowException, OSError, ValueError):  # Arrow reports damage by an OSError too
        metadata = None
    return isinstance(metadata, dict) and {name: metadata.get(name) for name in facts} == facts


def _write_rows(file: Path, source: Source) -> None:
    with atomic_file(file) as rows:
        for number in range(len(source)):
            row = {"name": text_of(source.name(number)), "label": source.label(number)}
            rows.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def write_parquet(file: Path, rows: RowsFile, facts: dict[str, Any], source: Source) -> None:
    """Write rows to a Parquet file, with the names and labels of their images; it is complete or absent. Raises
    `OSError`."""
    (width,) = rows.row
    embedding = pa.list_(pa.field("element", pa.float32(), nullable=False), width)
    fields = [("name", pa.string()), ("label", pa.int32()), ("embedding", embedding)]
    metadata = {"vantage": json.dumps({**facts, "shape": [rows.count, width], "classes": list(source.classes)})}
    schema = pa.schema([pa.field(*each) for each in fields], metadata=metadata)
    group = max(1, _GROUP_BYTES // (4 * width))
    with atomic_file(file) as whole, pq.ParquetWriter(whole, schema, use_dictionary=False) as writer:
        for start in range(0, rows.count, group):
            numbers = range(start, min(start + group, rows.count))
            part = rows.part(start, len(numbers)).flatten().numpy()
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(part), type=embedding)
            names = pa.array([text_of(source.name(number)) for number in numbers], pa.string())
            labels = pa.array([source.label(number) for number in numbers], pa.int32())
            writer.write_table(pa.Table.from_arrays([names, labels, vectors], schema=schema), row_group_size=group)
